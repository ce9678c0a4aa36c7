import { useEffect, useState } from 'preact/hooks'
import { useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Dialog } from '../parts/dialog.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.garbage

/** Counts what no model needs, and collects it. */
export function GarbageDialog({ onClose }: { readonly onClose: () => void }) {
  const { attempt, bridge, jobs } = useStore()
  const [id, setId] = useState<string>()
  useEffect(() => {
    void attempt(() => bridge.collect(true)).then((job) => (job === undefined ? onClose() : setId(job.id)))
  }, [])
  const found = jobs.value.find((job) => job.id === id && job.state === 'done')?.result
  const collect = async (): Promise<void> => {
    if ((await attempt(() => bridge.collect(false), started)) !== undefined) onClose()
  }
  return (
    <Dialog title={T.title} onClose={onClose}>
      <p role="status">
        {found === undefined
          ? T.counting
          : found.blobs
            ? T.found(found.blobs, formatBytes(found.bytes ?? 0))
            : T.nothing}
      </p>
      <footer>
        <button type="button" class="main" disabled={!found?.blobs} onClick={() => void collect()}>
          {T.confirm}
        </button>
        <button type="button" onClick={onClose}>
          {TEXTS.cancel}
        </button>
      </footer>
    </Dialog>
  )
}
