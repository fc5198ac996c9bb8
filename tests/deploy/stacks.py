"""An AWS for tests: ministack with all its services, and the stacks of deploy/aws in it.

    def test_something(aws: AwsServer) -> None:
        stacks = Stacks(aws)
        stacks.deploy("table")

What this emulator cannot do is taken out of the templates here, and told by `UNKNOWN` and `Stacks.template`.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from herdgate_gateway.deployments.documents import read_documents
from tests.dynamodb import DynamoServer
from tests.ministack import AwsServer, ministack
from tests.servers import ROOT, poll

__all__ = ["FOLDER", "NAMES", "UNKNOWN", "AwsServer", "Stacks", "aws", "template"]

FOLDER = ROOT / "deploy" / "aws"
NAMES = ("table", "network", "redis", "gateways", "workers", "events")
"""The stacks, in the order in which they are deployed."""

UNKNOWN = {
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
}
"""Types of resources that ministack 1.5.33 has never heard of."""

CODE = "connection_events.py"
PACKAGES = Path(boto3.__file__).parent.parent


@pytest.fixture(scope="session")
def aws() -> Iterator[DynamoServer]:
    """A server for all tests of this process."""
    with ministack(DynamoServer) as server:
        yield server


def template(name: str) -> Any:
    """A template as it is shipped."""
    (tree,) = read_documents(FOLDER / f"{name}.yaml")
    return tree


class Stacks:
    """The stacks of a fleet of its own.

    Attributes:
        fleet: its name, and that of its table and bus.
    """

    def __init__(self, server: AwsServer) -> None:
        self.server, self.fleet = server, f"f{uuid4().hex[:12]}"
        self._formation = server.client("cloudformation")
        self._parameters = {
            "Fleet": self.fleet,
            "Image": "herdgate:0.1.0",
            "Certificate": "arn:aws:acm:::certificate/x",
        }

    def deploy(self, *names: str) -> None:
        """Make these stacks, one after the other."""
        for name in names:
            self._prepare(name)
            body = self.template(name)
            asked = {key: self._parameters[key] for key in body["Parameters"] if key in self._parameters}
            self._formation.create_stack(
                StackName=f"{self.fleet}-{name}",
                TemplateBody=json.dumps(body),
                Capabilities=["CAPABILITY_IAM"],
                Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in asked.items()],
            )
            poll(partial(self._is_over, name), f"{name} is deployed", within_s=20)
            assert self._stack(name)["StackStatus"] == "CREATE_COMPLETE", self._stack(name)

    def outputs(self, name: str) -> dict[str, str]:
        """Of a stack."""
        return {each["OutputKey"]: each["OutputValue"] for each in self._stack(name)["Outputs"]}

    def resource(self, name: str, logical: str) -> str:
        """The id of a resource of a stack."""
        told = self._formation.describe_stack_resource(StackName=f"{self.fleet}-{name}", LogicalResourceId=logical)
        return str(told["StackResourceDetail"]["PhysicalResourceId"])

    def template(self, name: str) -> Any:
        """As it is shipped, but for what the emulator cannot do."""
        tree = template(name)
        resources = {key: each for key, each in tree["Resources"].items() if each["Type"] not in UNKNOWN}
        resources.pop("Idle", None)  # an alarm of a policy that is not there
        if name == "workers":  # a count that is a parameter is taken for a text
            resources["Service"]["Properties"]["DesiredCount"] = tree["Parameters"]["Workers"]["Default"]
        if name == "events":  # as `package` does it; and its Lambda runs functions by a Python without boto3
            function = resources["Function"]["Properties"]
            function["Code"] = {"S3Bucket": self.fleet, "S3Key": CODE}
            function["Environment"]["Variables"]["PYTHONPATH"] = str(PACKAGES)
        return {**tree, "Resources": resources}

    def _is_over(self, name: str) -> bool:
        return not self._stack(name)["StackStatus"].endswith("IN_PROGRESS")

    def _stack(self, name: str) -> Any:
        return self._formation.describe_stacks(StackName=f"{self.fleet}-{name}")["Stacks"][0]

    def _prepare(self, name: str) -> None:
        if name == "network":
            network = self.server.client("ec2")
            self._parameters["Vpc"] = vpc = network.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
            made = [network.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24") for number in (1, 2)]
            subnets = ",".join(each["Subnet"]["SubnetId"] for each in made)
            self._parameters |= {"Subnets": subnets, "BalancerSubnets": subnets}
        if name == "events":
            store = self.server.client("s3")
            store.create_bucket(Bucket=self.fleet)
            store.put_object(Bucket=self.fleet, Key=CODE, Body=_zipped(FOLDER / CODE))


def _zipped(file: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.write(file, file.name)
    return content.getvalue()
