import { formatAddress, type PeerAddress } from '@svc/internal-net'
import type { Listeners } from '@svc/internal-server'
import type { Mirrors, MirrorsDeps } from '@svc/mirror/parts'
import { configuredAddress } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { s3KeysOf } from '../config/s3-keys.ts'
import { StartError } from '../errors.ts'

/** The addresses of the mirrors, as `host:port`. */
export interface MirrorAddresses {
  readonly hubMirrorAddress?: string
  readonly ociMirrorAddress?: string
  readonly s3MirrorAddress?: string
}

interface MirrorsContext extends MirrorsDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly listeners: Listeners
}

/** The configured mirrors; undefined without any (spec add.22). @throws ConfigError, StartError naming the key */
export async function openMirrors(context: MirrorsContext): Promise<Mirrors | undefined> {
  const { hubAddr, ociAddr, s3Addr, token, names, onDemand, ...mirror } = context.config.mirror
  const texts = { hub: hubAddr, oci: ociAddr, s3: s3Addr }
  const at: Partial<Record<keyof typeof texts, PeerAddress>> = {}
  for (const kind of ['hub', 'oci', 's3'] as const) {
    const text = texts[kind]
    if (text !== undefined) at[kind] = configuredAddress(text, `[mirror] ${kind}_addr`)
  }
  if (Object.keys(at).length === 0) return undefined
  const { MirrorError, Mirrors } = await import('@svc/mirror/parts')
  const traffic = (kind: keyof typeof texts) => context.listeners.add(kind)
  try {
    return await Mirrors.listen(context, { at, token, names, onDemand, s3Keys: s3KeysOf(mirror), traffic })
  } catch (cause) {
    const { kind } = cause instanceof MirrorError ? cause.details : {}
    if (kind === undefined) throw cause
    const { message } = (cause as Error).cause as Error
    throw new StartError(`[mirror] ${kind}_addr = "${texts[kind]}" cannot be used: ${message}`, { cause })
  }
}

export function mirrorAddresses(mirrors: Mirrors | undefined): MirrorAddresses {
  const { hub, oci, s3 } = mirrors?.addresses() ?? {}
  return {
    ...(hub !== undefined && { hubMirrorAddress: formatAddress(hub) }),
    ...(oci !== undefined && { ociMirrorAddress: formatAddress(oci) }),
    ...(s3 !== undefined && { s3MirrorAddress: formatAddress(s3) })
  }
}
