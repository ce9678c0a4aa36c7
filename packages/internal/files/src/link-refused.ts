import { errnoOf } from '@svc/internal-errors'

/** Of file systems without links (FAT, many of servers), of a file with too many, and of a kernel that protects it. */
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
