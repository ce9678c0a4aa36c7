import { useAnswer, useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.garbage

/** Counts what no model needs, and collects it. */
export function GarbageDialog({ onClose }: { readonly onClose: () => void }) {
  const { attempt, bridge, jobs } = useStore()
  const count = useAnswer(() => bridge.collect(true), [], onClose)
  const found = jobs.value.find((job) => job.id === count?.id && job.state === 'done')?.result
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
        <Button text={T.confirm} look="main" isOff={!found?.blobs} does={collect} />
        <Button text={TEXTS.cancel} does={onClose} />
      </footer>
    </Dialog>
  )
}
