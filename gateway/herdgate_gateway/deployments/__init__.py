"""What deployments say of gateways and workers, and whether it goes together with how these end.

names        which files are of a deployment
documents    YAML and JSON as trees
kustomize    a kustomization folder as objects
readers      objects, ECS task definitions, CloudFormation, attributes of balancers -> model
model        timers, copies and settings of each workload
rules        what goes wrong with them, and the way out
checking     all of it, file by file
report       lines for people

Rules: nothing is asked of any cluster or cloud, only files are read; what a file leaves to the platform counts with the
platform's default, and what only the platform knows is not judged.
"""
