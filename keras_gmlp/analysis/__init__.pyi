from .explanation import class_maps as class_maps
from .plots import draw_attention as draw_attention
from .plots import draw_class_maps as draw_class_maps
from .plots import draw_spatial_filters as draw_spatial_filters
from .tokens import attention_maps as attention_maps
from .tokens import spatial_filters as spatial_filters
