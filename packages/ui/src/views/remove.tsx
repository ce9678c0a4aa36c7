import { useEffect, useState } from 'preact/hooks'
import type { Removal } from '../bridge.ts'
import { useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.remove

interface RemoveProps {
  readonly reference: string
  readonly onClose: () => void
  readonly onRemoved: () => void
}

/** Says what a removal frees, before it removes. */
export function RemoveDialog({ reference, onClose, onRemoved }: RemoveProps) {
  const { attempt, bridge } = useStore()
  const [removal, setRemoval] = useState<Removal>()
  const [isCollected, setCollected] = useState(true)
  useEffect(() => {
    void attempt(() => bridge.removal(reference)).then((answer) =>
      answer === undefined ? onClose() : setRemoval(answer)
    )
  }, [])
  const remove = async (): Promise<void> => {
    const removed = await attempt(
      () => bridge.remove(reference),
      () => T.done(reference)
    )
    if (removed === undefined) return
    if (isCollected) await attempt(() => bridge.collect(false))
    onRemoved()
  }
  return (
    <Dialog title={T.title(reference)} onClose={onClose}>
      <p role="status">
        {removal === undefined ? TEXTS.loading : T.frees(formatBytes(removal.freeableBytes))}{' '}
        {removal !== undefined && removal.sharedBytes > 0 && T.shared(formatBytes(removal.sharedBytes))}
      </p>
      <label>
        <input type="checkbox" checked={isCollected} onChange={(event) => setCollected(event.currentTarget.checked)} />{' '}
        {T.collect}
      </label>
      <footer>
        <button type="button" class="danger" disabled={removal === undefined} onClick={() => void remove()}>
          {T.confirm}
        </button>
        <button type="button" onClick={onClose}>
          {TEXTS.cancel}
        </button>
      </footer>
    </Dialog>
  )
}
