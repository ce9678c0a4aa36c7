import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { type Client, createClient } from './client.ts'
import { ClientError } from './errors.ts'
import type { Inventory } from './protocol/inventory.ts'

/** What these helpers need of a client. */
export type RuntimeClient = Pick<Client, 'makeView' | 'models'>

/**
 * The path of a model for a runtime: the GGUF, the first part of a split one, or the folder. Text that is no
 * `svc:///ns/name:quant` is returned as it is, so that it takes all that node-llama-cpp's `resolveModelFile` takes.
 * @param uri perhaps with `#file`, for one file of the model
 * @throws ClientError `E_UNKNOWN_REF`, `E_NOT_FOUND` for a model that is not complete here or has no such file
 */
export async function resolveModel(uri: string, client: RuntimeClient = createClient()): Promise<string> {
  if (!uri.startsWith('svc:')) return uri
  const hash = uri.indexOf('#')
  const ref = `svc:///${(hash < 0 ? uri : uri.slice(0, hash)).replace(/^svc:\/*/, '')}`
  const { loads, folder, files } = await client.makeView({ ref })
  if (hash < 0) return loads ?? folder
  const name = uri.slice(hash + 1)
  const file = files.find((each) => each.name === name)
  if (file !== undefined) return file.path
  throw new ClientError('E_NOT_FOUND', `${ref} has no file ${name}`, { candidates: files.map((each) => each.name) })
}

/** A cache as transformers.js takes it for `env.customCache`, with `env.useCustomCache = true`. */
export interface FileCache {
  /** The response for an address `…/ns/name/resolve/<revision>/<file>`, if that model and file are here. */
  match(request: string | Request): Promise<Response | undefined>
  /** Keeps nothing: models come in through the store. */
  put(request: string | Request, response: Response): Promise<void>
}

/**
 * The store as a cache of transformers.js: files of models that came from the hub, under the hub's names, read from the
 * store's own files. What is not here it fetches as always.
 */
export function storeCache(client: RuntimeClient = createClient()): FileCache {
  return {
    match: async (request) => {
      const url = typeof request === 'string' ? request : request.url
      const [, repo, file] = /([^/]+\/[^/]+)\/resolve\/[^/]+\/([^?#]+)/.exec(url) ?? []
      if (repo === undefined || file === undefined) return undefined
      const { namespaces } = await client.models()
      for (const ref of refsOf(repo, namespaces)) {
        const { files } = await client.makeView({ ref })
        const name = decodeURIComponent(file)
        const found = files.find((each) => each.name === name)
        if (found === undefined) continue
        const body = Readable.toWeb(createReadStream(found.path)) as ReadableStream
        return new Response(body, { headers: { 'content-length': String(found.size) } })
      }
      return undefined
    },
    put: async () => undefined
  }
}

/** The complete models of a repository of the hub. */
function refsOf(repo: string, namespaces: Inventory['namespaces']): readonly string[] {
  return namespaces.flatMap(({ ns, name, members }) =>
    members
      .filter(({ complete, origin }) => complete && origin?.repo?.toLowerCase() === repo.toLowerCase())
      .map(({ quant }) => `svc:///${ns}/${name}:${quant}`)
  )
}
