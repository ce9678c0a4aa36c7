import { useState } from 'preact/hooks'
import { useAnswer, useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.remove

interface RemoveProps {
  readonly reference: string
  readonly onClose: () => void
  readonly onRemoved: () => void
}

/** Says what a removal frees before removing. */
export function RemoveDialog({ reference, onClose, onRemoved }: RemoveProps) {
  const { attempt, bridge } = useStore()
  const removal = useAnswer(() => bridge.removal(reference), [], onClose)
  const [isCollected, setCollected] = useState(true)
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
        <Button text={T.confirm} look="danger" isOff={removal === undefined} does={remove} />
        <Button text={TEXTS.cancel} does={onClose} />
      </footer>
    </Dialog>
  )
}
