import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type FilePortFactory, type FilePortModule, nodeFilePort } from '@svc/internal-files'

/** A file port that tells the free space as if the store had a disk of this size for itself. */
export const smallDisk = (sizeBytes: number): FilePortModule => ({ module: import.meta.url, options: sizeBytes })

const usedBytes = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0)

const factory: FilePortFactory = (sizeBytes) => ({
  ...nodeFilePort,
  statfs: async (path) => ({
    ...(await nodeFilePort.statfs(path)),
    bsize: 1,
    bavail: Math.max(0, (sizeBytes as number) - usedBytes(path))
  })
})
export default factory
