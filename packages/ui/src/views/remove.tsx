import { useState } from 'preact/hooks'
import { useAnswer, useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.remove

interface RemoveProps {
  readonly references: readonly string[]
  readonly onClose: () => void
  readonly onRemoved: () => void
}

/** Says what a removal frees before removing. */
export function RemoveDialog({ references, onClose, onRemoved }: RemoveProps) {
  const { attempt, bridge } = useStore()
  const removal = useAnswer(() => bridge.removal(references), [], onClose)
  const name = references.length === 1 ? references[0]! : TEXTS.models.picked(references.length)
  const [isCollected, setCollected] = useState(true)
  const remove = async (): Promise<void> => {
    const removed = await attempt(
      async () => {
        for (const each of references) await bridge.remove(each)
        return name
      },
      () => T.done(name)
    )
    if (removed === undefined) return
    if (isCollected) await attempt(() => bridge.collect(false))
    onRemoved()
  }
  return (
    <Dialog title={T.title(name)} onClose={onClose}>
      <p role="status">
        {removal === undefined ? TEXTS.loading : T.frees(formatBytes(removal.freeableBytes), references.length)}{' '}
        {removal !== undefined && removal.sharedBytes > 0 && T.shared(formatBytes(removal.sharedBytes))}
      </p>
      {references.length > 1 && (
        <ul class="named">
          {references.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
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
