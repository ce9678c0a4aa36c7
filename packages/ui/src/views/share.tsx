import type { ShareResult } from '@svc/client/protocol'
import { useEffect, useState } from 'preact/hooks'
import { useStore } from '../context.ts'
import { Copyable } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Qr } from '../parts/qr.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.share

/** Announces a model, and shows what others need to fetch it. */
export function ShareDialog({ reference, onClose }: { readonly reference: string; readonly onClose: () => void }) {
  const { attempt, bridge } = useStore()
  const [share, setShare] = useState<ShareResult>()
  useEffect(() => {
    void attempt(() => bridge.share(reference)).then((answer) => (answer === undefined ? onClose() : setShare(answer)))
  }, [])
  return (
    <Dialog title={T.title(reference)} onClose={onClose}>
      <p role="status">{share === undefined ? TEXTS.loading : share.announced ? T.announced : T.notAnnounced}</p>
      {share?.note !== undefined && <p class="hint">{share.note}</p>}
      {share !== undefined && (
        <>
          <Copyable label={T.command} text={share.command} />
          <Copyable label={T.magnet} text={share.magnet} />
          <Qr text={share.magnet} label={T.qr} />
        </>
      )}
    </Dialog>
  )
}
