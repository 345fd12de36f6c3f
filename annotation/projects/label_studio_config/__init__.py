"""Configurations of Label Studio: a project made from one, and one made from a project."""

from annotation.projects.label_studio_config.reading import Control, LabellingConfig, read_config
from annotation.projects.label_studio_config.writing import config_of, write_config

__all__ = ["Control", "LabellingConfig", "config_of", "read_config", "write_config"]
