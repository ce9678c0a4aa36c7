import { readFileSync } from 'node:fs'
import type { Sha256Digest } from '@svc/ref'
import type { ModelConfig } from '../src/model-config.ts'
import type { IndexMember, ManifestFile } from '../src/types.ts'

export interface ManifestVectors {
  readonly canonical: {
    readonly accepted: readonly string[]
    readonly refused: readonly { readonly text: string; readonly reason: string }[]
    readonly refusedHex: readonly { readonly hex: string; readonly reason: string }[]
  }
  readonly manifests: readonly {
    readonly name: string
    readonly files: readonly ManifestFile[]
    readonly annotations: Readonly<Record<string, string>>
    readonly bytes: string
    readonly digest: Sha256Digest
    readonly torrent: {
      readonly name: string
      readonly infohash: string
      readonly pieceLength: number
      readonly paths: readonly string[]
    }
    readonly pieceLayersDigest: Sha256Digest
    readonly record: string
    readonly recordDigest: Sha256Digest
  }[]
  readonly indexes: readonly {
    readonly name: string
    readonly members: readonly IndexMember[]
    readonly bytes: string
    readonly digest: string
  }[]
  readonly merges: readonly {
    readonly name: string
    readonly previous: readonly IndexMember[]
    readonly members: readonly IndexMember[]
    readonly bytes: string
    readonly digest: string
  }[]
  readonly modelConfigs: readonly {
    readonly name: string
    readonly facts: ModelConfig
    readonly bytes: string
    readonly digest: string
  }[]
  readonly licenceNames: readonly { readonly name: string; readonly reason: string | null }[]
  readonly folders: readonly {
    readonly name: string
    readonly entries: readonly string[]
    readonly members: Readonly<Record<string, readonly string[]>>
    readonly upstreamConfig: boolean
    readonly licences: readonly string[]
    readonly companions: readonly string[]
    readonly folder: readonly (readonly [kind: string, name: string])[]
  }[]
  readonly pieceLengths: readonly {
    readonly name: string
    readonly sizes: readonly number[]
    readonly pieceLength: number
  }[]
}

export const vectors = JSON.parse(
  readFileSync(new URL('../../../vectors/manifest.json', import.meta.url), 'utf8')
) as ManifestVectors

export const toBytes = (text: string): Uint8Array => new TextEncoder().encode(text)
export const toText = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
