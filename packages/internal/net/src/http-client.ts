import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { loadAgain } from './load-again.ts'

/**
 * Parts of undici and of Node that undici loads as a whole, in the order in which it does: each after what it needs. A
 * part that a version does not have is passed over, and comes with the rest at the end.
 */
const PARTS: readonly string[] = [
  ...['node:tls', 'node:zlib', 'node:http2', 'node:stream/web'],
  ...['core/errors', 'core/util', 'dispatcher/dispatcher-base', 'core/request', 'core/connect'],
  ...['dispatcher/client-h1', 'dispatcher/client-h2', 'dispatcher/client', 'dispatcher/pool'],
  ...['dispatcher/env-http-proxy-agent', 'dispatcher/balanced-pool', 'dispatcher/retry-agent'],
  ...['web/webidl/index', 'web/fetch/util', 'web/fetch/headers', 'web/fetch/body', 'web/fetch/response'],
  ...['web/fetch/request', 'web/fetch/index', 'web/cookies/index', 'web/websocket/frame'],
  ...['web/websocket/receiver', 'web/websocket/websocket', 'web/websocket/stream/websocketstream'],
  ...['web/cache/cachestorage', 'web/eventsource/eventsource', 'mock/mock-utils', 'mock/mock-agent'],
  ...['mock/snapshot-agent', 'util/cache', 'handler/cache-handler', 'interceptor/cache', 'interceptor/dns'],
  ...['interceptor/deduplicate', 'api/api-request', 'api/index']
]

/**
 * The HTTP client undici, when it is first needed. It is a hundred files, which take 50 to 90 ms in one turn of the event
 * loop: they are loaded in parts, and others have their turns between. Throws what {@link loadAgain} does, and can be
 * called again then.
 * @param from `import.meta.url` of the caller, whose dependency it is
 */
export async function loadHttpClient<Module>(from: string): Promise<Module> {
  const load = createRequire(from)
  const main = load.resolve('undici')
  if (load.cache[main]?.loaded !== true) {
    for (const part of PARTS) {
      try {
        load(part.startsWith('node:') ? part : join(dirname(main), 'lib', `${part}.js`))
      } catch {
        // Ignored: what the whole needs is loaded below, where an error is reported.
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return loadAgain<Module>(from, 'undici')
}
