import { readFileSync } from 'node:fs'
import type { MemberSelector, ModelRef, RefErrorCode, RefErrorReason, SelectableMember } from '../src/index.ts'

export interface ParseRow {
  readonly name: string
  readonly input: string
  readonly ref?: ModelRef
  readonly canonical?: string
  readonly short?: string
  readonly error?: { readonly code: RefErrorCode; readonly reason: RefErrorReason }
  readonly suggestion?: string
}

interface RefVectors {
  readonly parse: readonly ParseRow[]
  readonly parseShort: readonly ParseRow[]
  readonly quants: { readonly tokens: string[]; readonly wordsOnly: string[]; readonly invalid: string[] }
  readonly repoIds: readonly {
    readonly input: string
    readonly id?: { readonly ns: string; readonly name: string }
    readonly reserved?: boolean
    readonly error?: RefErrorReason
    readonly folded?: string
  }[]
  readonly select: {
    readonly members: readonly SelectableMember[]
    readonly rows: readonly (MemberSelector & {
      readonly name: string
      readonly member?: string
      readonly error?: { readonly code: RefErrorCode; readonly candidates: readonly string[] }
    })[]
  }
  readonly resolve: {
    readonly repos: readonly {
      readonly repo: string
      readonly current: readonly string[]
      readonly tags: Readonly<Record<string, readonly string[]>>
    }[]
    readonly rows: readonly {
      readonly ref: string
      readonly quant?: string
      readonly error?: { readonly code: RefErrorCode; readonly candidates: readonly string[] }
    }[]
  }
}

/** vectors/ref.json, which other implementations and the daemon's own tests read too. */
export const vectors = JSON.parse(
  readFileSync(new URL('../../../vectors/ref.json', import.meta.url), 'utf8')
) as RefVectors
