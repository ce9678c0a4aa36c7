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
  const counted = jobs.value.find(({ id }) => id === count?.id)
  const found = counted?.state === 'done' ? counted.result : undefined
  const collect = async (): Promise<void> => {
    if ((await attempt(() => bridge.collect(false), started)) !== undefined) onClose()
  }
  return (
    <Dialog title={T.title} onClose={onClose}>
      <p role="status">
        {found === undefined
          ? (counted?.error?.message ?? T.counting)
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
