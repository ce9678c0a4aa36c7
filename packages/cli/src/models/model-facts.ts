import type { Client, OpenFile, OpenResult } from '@svc/client'
import { jsonDocument } from './documents.ts'
import { type WeightsFile, weightsFacts } from './weights-facts.ts'

/** What the model config and the files say of a model; what they do not say is undefined. */
export interface ModelFacts {
  /** The architecture. */
  readonly family: string | undefined
  readonly parameters: number | undefined
  readonly contextTokens: number | undefined
  /** The file of the chat template. */
  readonly template: string | undefined
}

/** @param files of the manifest */
export async function modelFacts(client: Client, files: readonly WeightsFile[]): Promise<ModelFacts> {
  const config = files.find(({ kind }) => kind === 'config')
  const read = config && (await jsonDocument(client, config.digest).catch(() => undefined))
  const { family, contextLength } = (read ?? {}) as { readonly family?: string; readonly contextLength?: number }
  const { parameters, templateIn } = await weightsFacts(client, files.filter(isWeights))
  const file = files.find(({ kind }) => kind === 'chat-template')?.name
  return {
    family,
    parameters,
    contextTokens: contextLength,
    template: file ?? (templateIn === undefined ? undefined : `in ${templateIn}`)
  }
}

/** The manifest's own files; the blobs of index and manifest are listed, too, but have no name. */
export const namedFiles = (result: OpenResult): OpenFile[] => result.files.filter((file) => file.name !== undefined)

/** True for files that are loaded: weights, and files that were taken as they are. */
export const isWeights = ({ kind }: { readonly kind?: string }): boolean =>
  kind === 'weights.gguf' || kind === 'weights.safetensors' || kind === 'opaque'
