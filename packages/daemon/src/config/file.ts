import { readFile } from 'node:fs/promises'
import { tryParseByteSize } from '@svc/client/protocol'
import { parse, TomlError } from 'smol-toml'
import { ConfigError } from '../errors.ts'
import { CONFIG_KEYS, type ConfigKey, type FileConfig, type KeyType } from './keys.ts'
import { VIEWS_KEYS } from './standing.ts'
import { TRUST_KEYS } from './trust.ts'
import { WEBSEED_KEYS } from './webseed.ts'

const MAX_BYTES = 1 << 20

const EXPECTED: Record<KeyType, string> = {
  string: 'a string',
  boolean: 'true or false',
  count: 'a whole number from 0',
  bytes: 'a whole number of bytes, or a size such as "50GB" or "1.5TiB"',
  seconds: 'a number of seconds above 0',
  strings: 'a list of strings',
  identities: 'a list of tables { issuer = "…", subject = "…" }'
}

const MAX_ITEMS = 1000

const isIdentity = (item: unknown): boolean =>
  typeof item === 'object' &&
  item !== null &&
  Object.keys(item).sort().join() === 'issuer,subject' &&
  Object.values(item).every((text) => typeof text === 'string' && text !== '')

const bytesOf = (value: unknown): unknown => (typeof value === 'string' ? tryParseByteSize(value) : value)

function fits(type: KeyType, value: unknown): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string' && !value.includes('\0')
    case 'boolean':
      return typeof value === 'boolean'
    case 'count':
      return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    case 'bytes':
      return fits('count', bytesOf(value))
    case 'seconds':
      return typeof value === 'number' && Number.isFinite(value) && value > 0 && value <= 86_400 * 24
    case 'strings':
      return Array.isArray(value) && value.length <= MAX_ITEMS && value.every((item) => typeof item === 'string')
    case 'identities':
      return Array.isArray(value) && value.length <= MAX_ITEMS && value.every(isIdentity)
  }
}

/**
 * Parses the text of `file`. @throws ConfigError on invalid TOML, an unknown section or key, or a value of the wrong
 * type, naming file, key and known alternatives (spec conf.2)
 */
export function parseConfigText(text: string, file: string): FileConfig {
  let table: Record<string, unknown>
  try {
    table = parse(text)
  } catch (cause) {
    const at = cause instanceof TomlError ? `:${cause.line}:${cause.column}` : ''
    throw new ConfigError(`${file}${at}: not valid TOML: ${(cause as Error).message.split('\n')[0]}`, { cause })
  }
  const config: Record<string, unknown> = {}
  for (const [section, content] of Object.entries(table)) {
    if (section === WEBSEED) {
      config[section] = Object.fromEntries(
        Object.entries(tableOf(content, `[${WEBSEED}."https://…"]`, WEBSEED_KEYS, file)).map(([url, of]) => [
          url,
          valuesOf(of, `[${WEBSEED}.${JSON.stringify(url)}]`, WEBSEED_KEYS, file)
        ])
      )
      continue
    }
    if (section === 'trust' || section === 'views') {
      const keys = LISTS[section]
      if (!Array.isArray(content) || content.length > MAX_ITEMS)
        throw new ConfigError(`${file}: "${section}" is written as tables [[${section}]]; their keys: ${list(keys)}`)
      config[section] = content.map((each) => valuesOf(each, `[[${section}]]`, keys, file))
      continue
    }
    if (!Object.hasOwn(CONFIG_KEYS, section)) {
      const known = `${list(CONFIG_KEYS)}, ${list(LISTS)}, ${WEBSEED}`
      throw new ConfigError(`${file}: unknown section or key "${section}"; known sections: ${known}`)
    }
    config[section] = valuesOf(content, `[${section}]`, CONFIG_KEYS[section as keyof typeof CONFIG_KEYS], file)
  }
  return config
}

/** Sections that are lists of tables. */
const LISTS = { trust: TRUST_KEYS, views: VIEWS_KEYS }
/** The section whose tables have user-defined names. */
const WEBSEED = 'webseed'

type Keys = Readonly<Record<string, ConfigKey>>

function tableOf(content: unknown, name: string, keys: Keys, file: string): Readonly<Record<string, unknown>> {
  if (typeof content !== 'object' || content === null || Array.isArray(content) || content instanceof Date) {
    throw new ConfigError(`${file}: "${name.slice(1, -1)}" must be a section, written ${name}; its keys: ${list(keys)}`)
  }
  return content as Record<string, unknown>
}

function valuesOf(content: unknown, name: string, keys: Keys, file: string): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tableOf(content, name, keys, file))) {
    if (!Object.hasOwn(keys, key)) {
      throw new ConfigError(`${file}: unknown key "${key}" in ${name}; known keys: ${list(keys)}`)
    }
    const { type } = keys[key]!
    if (!fits(type, value)) {
      throw new ConfigError(`${file}: ${name} ${key} must be ${EXPECTED[type]}; known keys: ${list(keys)}`)
    }
    values[key] = type === 'bytes' ? bytesOf(value) : value
  }
  return values
}

/** An absent file counts as empty unless `required`. @throws ConfigError also for one that cannot be read */
export async function readConfigFile(file: string, required: boolean): Promise<FileConfig> {
  return parseConfigText(await readConfigText(file, required), file)
}

/** The text that {@link readConfigFile} parses. */
export async function readConfigText(file: string, required: boolean): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (!required && (code === 'ENOENT' || code === 'ENOTDIR')) return ''
    throw new ConfigError(`${file}: cannot read the configuration (${code ?? 'unknown error'})`, { cause })
  }
  if (bytes.length > MAX_BYTES) throw new ConfigError(`${file}: a configuration is at most ${MAX_BYTES} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new ConfigError(`${file}: not valid UTF-8`, { cause })
  }
}

const list = (keys: object): string => Object.keys(keys).join(', ')
