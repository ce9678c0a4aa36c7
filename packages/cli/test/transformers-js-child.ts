// Loads an encoder with transformers.js: from a hub at an address, or through the store as its cache. Prints what it computes.
import { pathToFileURL } from 'node:url'
import { createClient } from '@svc/client'
import { storeCache } from '@svc/client/runtimes'

const [module = '', repo = '', host = '', cacheDir = '', socketPath = ''] = process.argv.slice(2)
const { AutoModel, Tensor, env } = await import(pathToFileURL(module).href)
env.remoteHost = host
env.allowLocalModels = false
env.cacheDir = cacheDir
const client = socketPath === '' ? undefined : createClient({ socketPath })
if (client !== undefined) {
  env.useFSCache = false
  env.useCustomCache = true
  env.customCache = storeCache(client)
}
const model = await AutoModel.from_pretrained(repo, { dtype: 'fp32', device: 'cpu' })
const tokens = (values: readonly bigint[]) => new Tensor('int64', BigInt64Array.from(values), [1, values.length])
const { last_hidden_state } = await model({
  input_ids: tokens([7n, 11n, 13n]),
  attention_mask: tokens([1n, 1n, 1n])
})
process.stdout.write(JSON.stringify({ dims: last_hidden_state.dims, data: [...last_hidden_state.data] }))
client?.close()
