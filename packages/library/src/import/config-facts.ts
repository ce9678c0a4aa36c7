import { type ConfigFacts, readConfig } from '@svc/classify'
import type { Offload } from '@svc/internal-state'

/** Shorter ones are read at once: they take less than a thread's answer. */
const SHORT_BYTES = 16 << 10

/** The facts of an upstream `config.json`, or of one that was not read. A longer one is read in a thread: its author is a stranger. */
export async function configFacts(bytes: Uint8Array | undefined, offload: Offload): Promise<ConfigFacts> {
  return bytes === undefined || bytes.length <= SHORT_BYTES ? readConfig(bytes) : offload.call('config', bytes)
}
