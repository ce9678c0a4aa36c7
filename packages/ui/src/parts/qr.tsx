import { encode } from 'uqr'
import { TEXTS } from '../texts.ts'

/** A QR code of the text, or a sentence where it is too long for one. */
export function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  const code = tryEncode(text)
  if (code === undefined) return <p class="hint">{TEXTS.share.tooLong}</p>
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
    // four modules of white around it, as the standard has it
    return encode(text, { ecc: 'L', border: 4 })
  } catch {
    return undefined
  }
}
