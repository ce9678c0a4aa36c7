export { MAX_USTAR_BYTES, TAR_BLOCK, tarPadding, ustarHeader } from './ustar-header.ts'
