"""Functions of CloudFormation: what comes of them, and what stays as it is because only AWS knows it."""

from typing import Any

import pytest
import yaml

from herdgate_gateway.deployments.documents import parsed
from herdgate_gateway.deployments.readers.intrinsics import resources_of

HEAD = """
Parameters:
  Stage: {Type: String, Default: prod}
  Stop: {Type: Number, Default: 90}
  Unset: {Type: String}
Mappings:
  Timers: {prod: {Stop: 120}, test: {Stop: 30}}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsTest: !Not [!Condition IsProd]
  IsBoth: !And [!Condition IsProd, !Condition IsTest]
  IsEither: !Or [!Condition IsProd, !Condition IsTest]
  IsHere: !Equals [!Ref AWS::Region, eu-west-1]
  IsNever: !And [!Condition IsHere, !Condition IsTest]
  IsAlways: !Or [!Condition IsHere, !Condition IsProd]
  IsMaybe: !Or [!Condition IsHere, !Condition IsTest]
  IsItself: !Not [!Condition IsItself]
"""

VALUES: list[tuple[str, Any]] = [
    ("!Ref Stop", 90),
    ("!Ref Unset", {"Ref": "Unset"}),
    ("!Ref Other", {"Ref": "Other"}),
    ("!Ref [Stop]", {"Ref": ["Stop"]}),
    ("!GetAtt Other.Arn", {"Fn::GetAtt": "Other.Arn"}),
    ('!Sub "rediss://${Stage}:${Stop}/${!Literal}"', "rediss://prod:90/${Literal}"),
    ('!Sub ["${Host}-${Stage}", {Host: !Ref Stop}]', "90-prod"),
    ('!Sub "${Other.Arn}-${Stage}"', {"Fn::Sub": "${Other.Arn}-${Stage}"}),
    ('!Sub "${Unset}"', {"Fn::Sub": "${Unset}"}),
    ('!Join ["-", [a, !Ref Stage, 3]]', "a-prod-3"),
    ('!Join ["-", [a, !Ref Other]]', {"Fn::Join": ["-", ["a", {"Ref": "Other"}]]}),
    ("!FindInMap [Timers, !Ref Stage, Stop]", 120),
    ("!FindInMap [Timers, !Ref Stage, Start]", {"Fn::FindInMap": ["Timers", "prod", "Start"]}),
    ("!If [IsProd, !Ref Stop, 5]", 90),
    ("!If [IsTest, 5, !FindInMap [Timers, test, Stop]]", 30),
    ("!If [IsBoth, 1, 2]", 2),
    ("!If [IsEither, 1, 2]", 1),
    ("!If [IsNever, 1, 2]", 2),
    ("!If [IsAlways, 1, 2]", 1),
    ("!If [IsMaybe, 1, 2]", {"Fn::If": ["IsMaybe", 1, 2]}),
    ("!If [IsHere, 1, 2]", {"Fn::If": ["IsHere", 1, 2]}),
    ("!If [IsItself, 1, 2]", {"Fn::If": ["IsItself", 1, 2]}),
    ("!If [IsNowhere, 1, 2]", {"Fn::If": ["IsNowhere", 1, 2]}),
    ("[1, !If [IsTest, 2, !Ref AWS::NoValue], 3]", [1, 3]),
    ("{a: 1, b: !If [IsTest, 2, !Ref AWS::NoValue]}", {"a": 1}),
    ("{b: !If [IsTest, 2, !Ref AWS::NoValue]}", {}),
]


def resources(text: str, **given: object) -> dict[str, Any]:
    (tree,) = parsed(f"{HEAD}\nResources:\n{text}", "here")
    return dict(resources_of(tree, given))


@pytest.mark.parametrize(("written", "value"), VALUES)
def test_functions_are_what_comes_of_them(written: str, value: object) -> None:
    (made,) = resources(f"  A: {{Type: T, Value: {written}, Last: x}}").values()
    assert made["Value"] == value


def test_values_that_are_given_hold_over_defaults() -> None:
    text = "  A: {Type: T, Stop: !If [IsProd, !Ref Stop, !FindInMap [Timers, !Ref Stage, Stop]]}"
    assert resources(text, Stop="7")["A"]["Stop"] == "7"
    assert resources(text, Stop="7", Stage="test")["A"]["Stop"] == 30


def test_resources_whose_condition_does_not_hold_are_not_made() -> None:
    names = ("IsProd", "IsTest", "IsHere", "IsNowhere")
    text = yaml.safe_dump({name: {"Type": "T", "Condition": name} for name in names}).replace("\n", "\n  ")
    assert resources(f"  {text}").keys() == {"IsProd", "IsHere", "IsNowhere"}


def test_conditions_that_ask_others_twice_each_are_asked_once() -> None:
    chain = {f"C{n}": {"Fn::And": [{"Condition": f"C{n + 1}"}, {"Condition": f"C{n + 1}"}]} for n in range(100)}
    conditions = chain | {"C100": {"Fn::Equals": ["a", "a"]}}
    resources = {"Made": {"Type": "Any", "Condition": "C0"}}
    assert resources_of({"Conditions": conditions, "Resources": resources}, {}) == {"Made": resources["Made"]}
