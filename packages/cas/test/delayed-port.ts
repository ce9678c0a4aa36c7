import type { FilePort } from '@svc/internal-files'
import faults from '@svc/testkit/file-faults'

const EXT4 = 0xef53

/** The port of a `Faults` plan, by its options, that says that every folder is on ext4: files are written early. */
export default (options: unknown): FilePort => {
  const port = faults(options)
  return { ...port, statfs: async (path) => ({ ...(await port.statfs(path)), type: EXT4 }) }
}
