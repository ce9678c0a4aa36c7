import type { ShareResult } from '@svc/client/protocol'
import { encode } from 'uqr'
import { useAnswer, useStore } from '../context.ts'
import { Copyable } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.share

export function ShareDialog({ reference, onClose }: { readonly reference: string; readonly onClose: () => void }) {
  const { bridge, status } = useStore()
  const share = useAnswer(() => bridge.share(reference), [], onClose)
  const reach = share && reachOf(share, status.value?.swarm.dhtPort !== undefined)
  return (
    <Dialog title={T.title(reference)} onClose={onClose}>
      <p role="status" class={`mark ${reach === undefined ? 'none' : reach === 'nobody' ? 'warn' : 'good'}`}>
        {reach === undefined ? TEXTS.loading : T.reach[reach]}
      </p>
      {share?.note !== undefined && <p class="hint">{share.note}</p>}
      {share !== undefined && reach !== undefined && reach !== 'nobody' && (
        <>
          <Copyable label={T.command[reach]} text={share.command} />
          <Copyable label={T.magnet} text={share.magnet} />
          {reach !== 'machine' && <Qr text={share.magnet} label={T.qr} />}
        </>
      )}
    </Dialog>
  )
}

type Reach = keyof typeof T.reach

/** Who can reach what is announced: the addresses in the link tell, and whether strangers find it without them. */
export function reachOf({ announced, note, peers, webseeds, trackers }: ShareResult, isListed: boolean): Reach {
  if (!announced) return 'nobody'
  // of an announced model, a note says that no address leads here from outside
  if (note !== undefined) return 'machine'
  const hosts = [...peers, ...webseeds].map((address) => address.replace(/^https?:\/\//, ''))
  return isListed || trackers.length > 0 || hosts.some((host) => !LOCAL.test(host)) ? 'anybody' : 'network'
}

/** Addresses that lead nowhere outside of a network: RFC 1918, link-local, and unique local ones. */
const LOCAL = /^(?:10\.|127\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|\[(?:f[cd]|fe[89ab]|::1))/i

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
