import { encode } from 'uqr'
import { useAnswer, useStore } from '../context.ts'
import { Copyable } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.share

export function ShareDialog({ reference, onClose }: { readonly reference: string; readonly onClose: () => void }) {
  const { bridge } = useStore()
  const share = useAnswer(() => bridge.share(reference), [], onClose)
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

/** A QR code of the text, or a sentence where it is too long for one. */
function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  const code = tryEncode(text)
  if (code === undefined) return <p class="hint">{T.tooLong}</p>
  const path = code.data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  return (
    <svg class="qr" viewBox={`0 0 ${code.size} ${code.size}`} role="img" aria-label={label}>
      <rect width="100%" height="100%" fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

function tryEncode(text: string): ReturnType<typeof encode> | undefined {
  try {
    // four modules of white around it, as the standard requires
    return encode(text, { ecc: 'L', border: 4 })
  } catch {
    return undefined
  }
}
