import { ConfigError } from '../errors.ts'
import { absolutePath } from './path.ts'

export const WEBSEED_KEYS = {
  region: { type: 'string', summary: 'region of the bucket, us-east-1 for servers without regions' },
  credentials_file: {
    type: 'string',
    summary: 'file with the access key; if unset, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  },
  profile: { type: 'string', summary: 'profile in that file, "default" if unset' }
} as const satisfies Record<string, { readonly type: 'string'; readonly summary: string }>

export type WebseedTable = { readonly [K in keyof typeof WEBSEED_KEYS]?: string }

/** A webseed whose requests are signed (spec add.33). */
export interface WebseedKeyConfig {
  /** The base of the URLs whose requests are signed: an origin and a path that ends in a slash. */
  readonly base: URL
  readonly region: string
  /** Absolute; undefined: the environment. */
  readonly credentialsFile: string | undefined
  readonly profile: string
}

/** @throws ConfigError naming the table and the problem */
export function webseedKeyConfigs(tables: Readonly<Record<string, WebseedTable>> = {}): readonly WebseedKeyConfig[] {
  return Object.entries(tables).map(([text, { region = 'us-east-1', credentials_file, profile = 'default' }]) => {
    const wrong = (what: string): ConfigError => new ConfigError(`[webseed."${text}"]: ${what}`)
    const base = URL.parse(text)
    if (base === null || !['http:', 'https:'].includes(base.protocol)) {
      throw wrong('a webseed is an http or https URL, such as "https://s3.example.com/bucket/models/"')
    }
    if (base.username + base.password !== '')
      throw wrong('a URL with a password in it is refused; use credentials_file')
    if (base.search + base.hash !== '') throw wrong('the URL must not have a query or a fragment')
    if (!base.pathname.endsWith('/')) base.pathname += '/'
    if (!/^[a-z0-9-]{1,64}$/.test(region)) throw wrong('region is a word of lower-case letters, digits and dashes')
    if (profile === '' || /[\]\r\n]/.test(profile)) throw wrong('profile is the name of a part of credentials_file')
    return {
      base,
      region,
      profile,
      credentialsFile: credentials_file && absolutePath(credentials_file, 'credentials_file', wrong)
    }
  })
}
