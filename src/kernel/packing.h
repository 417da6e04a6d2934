/*
 * packing: what all tables of kernels agree on about the storage of dense weights and of the masks of relu_maxpool.
 */
#ifndef BWI_PACKING_H
#define BWI_PACKING_H

/* Up to so many outputs, dense weights are stored [out][in]; beyond, in panels [ceil(out/PANEL)][in][PANEL]. */
#define BWI_DENSE_NARROW 16
#define BWI_DENSE_PANEL 32
/* Extents of a tile's x are rounded up to it where the weights' gradient is made by blocks. */
#define BWI_DENSE_ROOM 16

/* relu_maxpool keeps four bits for each element of its output; channels count in groups of so many. */
#define BWI_MASK_CHANNELS 16

#endif
