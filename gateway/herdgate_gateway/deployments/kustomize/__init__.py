"""Renders kustomization folders, as far as it knows their keys: `kubectl kustomize` without kubectl.

    Kustomization -> resources, folders first -> generated ConfigMaps -> patches -> namespace, labels, replicas, images
                                                                     -> at the end: names of ConfigMaps with their hash

A key that is not known here is an error that names it, never something left out in silence.
"""

from herdgate_gateway.deployments.kustomize.folders import is_kustomization, render

__all__ = ["is_kustomization", "render"]
