import type { ReadAt } from '@svc/classify'
import { nodeFilePort, readUpTo } from '@svc/internal-files'

/** Random access to an open file of `sizeBytes`; short only at its end. */
export const readAtOf =
  (fd: number, sizeBytes: number): ReadAt =>
  (offset, lengthBytes) =>
    readUpTo(nodeFilePort, fd, new Uint8Array(Math.max(0, Math.min(lengthBytes, sizeBytes - offset))), offset)
