import { errnoOf } from '@svc/internal-errors'

/** From file systems without links (FAT, many network shares), for a file with too many, and from a kernel that protects it. */
const REFUSALS: ReadonlySet<string | undefined> = new Set([
  'EPERM',
  'EMLINK',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EINVAL'
])

/** Whether an error says that a file cannot have a link there: another way to give it a name may work. */
export const isLinkRefused = (error: unknown): boolean => REFUSALS.has(errnoOf(error))
