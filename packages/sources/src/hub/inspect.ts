import {
  type Inspection,
  type InspectThreads,
  inspectFiles,
  inspectText,
  type ModelFinding,
  type ReadAt
} from '@svc/classify'
import type { Hub, HubFile } from '@svc/hub'
import { loopBudget } from '@svc/internal-concurrency'
import type { Offload } from '@svc/library/parts'
import { HeaderTooLarge, windowOf } from './window.ts'

/** Files of a repository that are read, each in one to three requests: configurations first. */
const MAX_READ_FILES = 96
/** Of files that cannot be read here. */
const NOTHING_MORE = new Uint8Array(0)

/** What would run code in a repository, and what is malformed, before anything of it is fetched (spec add.60). @throws HubError */
export async function inspectHub(
  hub: Pick<Hub, 'read'>,
  files: readonly HubFile[],
  { offload, signal }: { readonly offload: Offload; readonly signal: AbortSignal }
): Promise<Inspection> {
  const byName = new Map(files.map((file) => [file.path, file]))
  const cut = new Set<string>()
  let read = 0
  const { findings, unread } = await inspectFiles(
    files.map(({ path: name, sizeBytes }) => ({ name, sizeBytes })),
    (name) => (read++ < MAX_READ_FILES ? readerOf(hub, byName.get(name)!, cut, signal) : undefined),
    inThread(offload)
  )
  return { findings: findings.filter(({ file }) => !cut.has(file)), unread: [...unread, ...cut] }
}

/** Shorter texts are looked at at once: they take less than a thread's answer, whatever is in them. */
const SHORT_BYTES = 16 << 10

const inThread = (offload: Offload): InspectThreads => ({
  head: (head, sizeBytes) => offload.call('inspectHead', { head, sizeBytes }),
  text: (name, bytes) =>
    bytes.length <= SHORT_BYTES ? inspectText(name, bytes) : offload.call('inspectText', { name, bytes })
})

/** The first finding of a plan. */
export interface PlanFinding extends ModelFinding {
  /** Further findings. */
  readonly others: number
}

/** What names and the root `config.json` tell of the files that a plan brings. */
export async function markOf(
  rows: readonly {
    readonly name: string
    readonly size: number
    readonly action: string
    readonly companion?: boolean
  }[],
  config: string | undefined,
  offload: Offload
): Promise<PlanFinding | undefined> {
  const comes = rows.filter(({ action, companion }) => action !== 'skip' || companion === true)
  const bytes = config === undefined ? undefined : Buffer.from(config)
  const ofConfig: ReadAt = async (offset, lengthBytes) => bytes!.subarray(offset, offset + lengthBytes)
  const isRead = (name: string): boolean => name === CONFIG && bytes !== undefined
  const { findings } = await inspectFiles(
    comes.map(({ name, size }) => ({ name, sizeBytes: isRead(name) ? bytes!.length : size })),
    (name) => (isRead(name) ? ofConfig : undefined),
    inThread(offload)
  )
  const [first, ...more] = findings
  return first && { ...first, others: more.length }
}

const CONFIG = 'config.json'

/** @param cut gets the files of which not all that was asked for could be read */
function readerOf(hub: Pick<Hub, 'read'>, file: HubFile, cut: Set<string>, signal: AbortSignal): ReadAt {
  const readAt = windowOf(hub, file, signal)
  return async (offset, lengthBytes) => {
    await loopBudget.next('inspections')
    try {
      return await readAt(offset, lengthBytes)
    } catch (error) {
      if (!(error instanceof HeaderTooLarge)) throw error
      cut.add(file.path)
      return NOTHING_MORE
    }
  }
}
