import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { probableNext } from '@svc/testkit/llama-cpp'
import { makeLlamaGgufs, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { seePicture } from '@svc/testkit/llama-vision'
import type { PythonLoaders } from '@svc/testkit/python-loaders'

/** What a loader computes: the same files give the same numbers. */
export type Computed = readonly number[]

export interface LoaderContext {
  readonly python: PythonLoaders
  /** Of 28 × 28 pixels. */
  readonly picture: string
}

/** A kind of repository, and how its loader loads it. The guide has a row for each. */
export interface LoaderRow {
  readonly kind: string
  readonly loaders: readonly string[]
  /** Absent: Python's script writes it. */
  readonly files?: () => Readonly<Record<string, Uint8Array>>
  /** Without this file the loader must fail or compute something else. */
  readonly needs: string
  /** From a folder. */
  readonly load: (folder: string, context: LoaderContext) => Promise<Computed>
  /** Whether its loader loads by the name of a repository, too. */
  readonly byName: boolean
}

const fileOf = (folder: string, start: string): string =>
  join(
    folder,
    readdirSync(folder)
      .sort()
      .find((name) => name.startsWith(start)) ?? `${start} is absent`
  )
const named = (files: Readonly<Record<string, Uint8Array>>) => (): Readonly<Record<string, Uint8Array>> => files

/** What llama.cpp expects after a text. */
async function byLlamaCpp(path: string): Promise<Computed> {
  const next = await probableNext(path)
  return [...next].sort(([a], [b]) => a - b).flat()
}

const GGUF: readonly LoaderRow[] = [
  {
    kind: 'GGUF',
    loaders: ['llama.cpp', 'transformers'],
    files: named({ 'tiny-f32.gguf': makeLlamaGgufs()[0]! }),
    needs: 'tiny-f32.gguf',
    byName: false,
    load: async (folder, { python }) => [
      ...(await byLlamaCpp(fileOf(folder, 'tiny'))),
      ...(await python.ask<number[]>('load', 'gguf', fileOf(folder, 'tiny')))
    ]
  },
  {
    kind: 'GGUF, split',
    loaders: ['llama.cpp'],
    files: () =>
      Object.fromEntries(
        makeLlamaGgufs({ shards: 3 }).map((bytes, i) => [`tiny-f32-0000${i + 1}-of-00003.gguf`, bytes])
      ),
    needs: 'tiny-f32-00002-of-00003.gguf',
    byName: false,
    load: (folder) => byLlamaCpp(fileOf(folder, 'tiny'))
  },
  {
    kind: 'GGUF with a projector',
    loaders: ['llama.cpp'],
    files: named({ 'tiny-f32.gguf': makeLlamaGgufs()[0]!, 'mmproj-f16.gguf': makeProjectorGguf() }),
    needs: 'mmproj-f16.gguf',
    byName: false,
    load: async (folder, { picture }) => {
      const { vision, withPicture, without } = await seePicture(
        fileOf(folder, 'tiny'),
        fileOf(folder, 'mmproj'),
        picture
      )
      return [Number(vision), withPicture, without]
    }
  }
]

const inPython = (kind: string, needs: string, ...loaders: string[]): LoaderRow => ({
  kind,
  loaders,
  needs,
  byName: true,
  load: (folder, { python }) => python.ask<number[]>('load', kind, folder)
})

export const LOADER_ROWS: readonly LoaderRow[] = [
  ...GGUF,
  inPython('llama', 'generation_config.json', 'transformers'),
  inPython('qwen', 'merges.txt', 'transformers'),
  inPython('sharded', 'model.safetensors.index.json', 'transformers'),
  inPython('lora', 'adapter_config.json', 'peft'),
  inPython('sentence-transformers', 'modules.json', 'sentence-transformers'),
  inPython('diffusers', 'text_encoder/config.json', 'transformers'),
  inPython('whisper', 'generation_config.json', 'transformers'),
  inPython('vision-language', 'processor_config.json', 'transformers'),
  inPython('remote code', 'utils_acme.py', 'transformers')
]

/** The guide's page of these rows. */
export const GUIDE: string = readFileSync(new URL('../../../docs/guide/models-that-load.md', import.meta.url), 'utf8')

/** The loaders that the page names, with their versions. */
export const testedWith = (): Record<string, string> =>
  Object.fromEntries(
    [...GUIDE.matchAll(/`([\w.-]+)` (?:of node-llama-cpp )?(\d+(?:\.\d+)+)/g)].map(([, name, version]) => [
      name,
      version
    ])
  )
