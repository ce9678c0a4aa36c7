// What the daemon is made of, at the same version: no promise to anybody else.

export { listOci, requireImage } from './oci/source.ts'
