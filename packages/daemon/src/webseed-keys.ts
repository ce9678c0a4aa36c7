import type { WebseedKeys } from '@svc/sharing/parts'
import type { DaemonConfig, Environment } from './config/config.ts'
import { ConfigError } from './errors.ts'

/** Undefined without any. @throws ConfigError naming a file or variables that cannot be used, but never their content */
export async function webseedKeysOf(
  { webseedKeys }: Pick<DaemonConfig, 'webseedKeys'>,
  env: Environment
): Promise<WebseedKeys | undefined> {
  if (webseedKeys.length === 0) return undefined
  const keys = new (await import('@svc/sharing/parts')).WebseedKeys(webseedKeys, env)
  await keys.check().catch((cause: Error) => {
    throw new ConfigError(`[webseed]: ${cause.message}`, { cause })
  })
  return keys
}
