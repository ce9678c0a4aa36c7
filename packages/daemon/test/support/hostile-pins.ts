import { createHash } from 'node:crypto'
import {
  type ArtifactTorrent,
  companionsTorrent,
  type FileKind,
  type ManifestFile,
  manifestPath,
  type OmittedFile,
  pieceLayersOf,
  sealCompanions,
  sealManifest,
  sealModelConfig,
  torrentOf
} from '@svc/manifest'
import { encodeTorrent, leafLayer, type PieceLayers, pieceLayer, piecesRoot, toHex } from '@svc/metainfo'
import { digestFromBytes, digestFromHex, type Sha256Digest } from '@svc/ref'

/** A file as a hostile manifest names it: by the digest of bytes, perhaps with the merkle root of others of that size. */
export interface ClaimedFile {
  readonly kind: FileKind
  readonly name: string
  readonly role?: string
  /** Whose digest it names. */
  readonly bytes: Uint8Array
  /** Whose merkle root it names. Default: those of `bytes`. */
  readonly rootOf?: Uint8Array
  /** Whether whoever wrote the manifest can give the bytes. */
  readonly isGiven?: boolean
}

/** A pinned artifact as a stranger publishes it, with what its webseed has. */
export interface HostilePin {
  readonly manifestDigest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  readonly torrent: Pick<ArtifactTorrent, 'name' | 'infohash'>
  readonly files: readonly ManifestFile[]
  /** By the path below the webseed. */
  readonly content: ReadonlyMap<string, Buffer>
}

const digestOf = (bytes: Uint8Array): Sha256Digest => digestFromHex(createHash('sha256').update(bytes).digest('hex'))

/** Seals a manifest of any claims, beside a configuration that is given. @param label makes it another artifact */
export function hostilePin(
  claimed: readonly ClaimedFile[],
  {
    annotations = {},
    label = ''
  }: { readonly annotations?: Readonly<Record<string, string>>; readonly label?: string } = {}
): HostilePin {
  const layers = new Map<string, Uint8Array>()
  const given = new Map<string, Buffer>()
  const fileOf = ({ kind, name, role, bytes, rootOf = bytes }: ClaimedFile): ManifestFile => {
    const leaves = leafLayer(rootOf)
    const root = piecesRoot(leaves, bytes.length)
    if (bytes.length > 1 << 20) layers.set(toHex(root), pieceLayer(leaves, bytes.length, 1 << 20))
    const bt = bytes.length === 0 ? {} : { bt: { merkleRoot: digestFromBytes(root) } }
    return { kind, name, digest: digestOf(bytes), size: bytes.length, ...bt, ...(role !== undefined && { role }) }
  }
  const model = { weightsFormat: 'gguf', quantization: 'q8_0', family: `hostile${label}` }
  const config = sealModelConfig(model as Parameters<typeof sealModelConfig>[0])
  const hasConfig = claimed.some(({ kind }) => kind === 'config')
  const all: readonly ClaimedFile[] = [
    ...(hasConfig ? [] : [{ kind: 'config', name: 'modelconfig.json', bytes: config.bytes, isGiven: true } as const]),
    ...claimed
  ]
  const manifest = sealManifest(all.map(fileOf), { 'svc.specVersion': '1', ...annotations })
  const torrent = torrentOf(manifest)
  for (const { name, bytes, isGiven } of all)
    if (isGiven === true) given.set(`${torrent.name}/${name}`, Buffer.from(bytes))
  given.set(`${torrent.name}/${manifestPath(manifest.digest)}`, Buffer.from(manifest.bytes))
  given.set(`bt/piece-layers/${toHex(torrent.infohash)}`, Buffer.from(pieceLayersOf(torrent, layers as PieceLayers)))
  const { files } = manifest.document
  return { manifestDigest: manifest.digest, infohash: torrent.infohashText, torrent, files, content: given }
}

/** Companions as a stranger publishes them beside a pin. */
export interface HostileCompanions {
  readonly pin: { readonly digest: Sha256Digest; readonly infohash: string }
  /** By the path below the webseed. */
  readonly content: ReadonlyMap<string, Buffer>
}

/** Seals companions of any claims: files that are not given, and omissions that are none. */
export function hostileCompanions(
  claimed: readonly Pick<ClaimedFile, 'name' | 'bytes' | 'rootOf' | 'isGiven'>[],
  omitted: readonly OmittedFile[]
): HostileCompanions {
  const roots = new Map(
    claimed.map(({ bytes, rootOf = bytes }) => [digestOf(bytes), piecesRoot(leafLayer(rootOf), bytes.length)])
  )
  const files = claimed.map(({ name: path, bytes }) => ({ path, size: bytes.length, digest: digestOf(bytes) }))
  const companions = sealCompanions({ files, omitted })
  const torrent = companionsTorrent(companions, (digest) => roots.get(digest))
  const content = new Map<string, Buffer>()
  for (const { name, bytes, isGiven } of claimed)
    if (isGiven === true) content.set(`${torrent.name}/${name}`, Buffer.from(bytes))
  content.set(`${torrent.name}/${manifestPath(companions.digest)}`, Buffer.from(companions.bytes))
  content.set(`bt/${toHex(torrent.infohash)}.torrent`, Buffer.from(encodeTorrent(torrent, new Map())))
  return { pin: { digest: companions.digest, infohash: torrent.infohashText }, content }
}
