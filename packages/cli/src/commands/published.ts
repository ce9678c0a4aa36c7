import type { ListedModel } from '@svc/publish'
import { CliError, usage } from '../errors.ts'
import { formatBytes } from '../format.ts'
import { withPublish } from '../libraries.ts'
import { chooseQuants } from '../questions/choose-quants.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import type { Session } from '../session.ts'
import { type ImportOptions, importBt } from './imports.ts'

export interface PublishedOptions extends ImportOptions {
  readonly all?: boolean
}

/** A web address, perhaps with the name of one of its models behind `#`. */
const ADDRESS = /^(https?:\/\/[^#]+?)(?:#(.*))?$/i

/** A web address that is none of the hub's; undefined for anything else. */
export function tryParseWebAddress(
  text: string
): { readonly url: string; readonly ref: string | undefined } | undefined {
  const [, url, ref] = ADDRESS.exec(text) ?? []
  return url === undefined || !URL.canParse(url) ? undefined : { url, ref: ref || undefined }
}

/** `svc import http://host/[#REF]`: imports what `svc publish` wrote there, each model by its pin. */
export async function importPublished(
  session: Session,
  { url, ref }: { readonly url: string; readonly ref: string | undefined },
  options: PublishedOptions
): Promise<void> {
  const listing = await withPublish(session, (lib) => lib.readListing(url, session.signal))
  const named = listing.models.filter((model) => ref === undefined || isMeant(model, ref.toLowerCase()))
  if (named.length === 0)
    throw new CliError('notFound', `${url} has ${ref === undefined ? 'no models' : `no ${ref}`}`, {
      candidates: listing.models.map((model) => `${url}#${nameOf(model)}`)
    })
  const isAll = options.all === true || named.length === 1
  const chosen = isAll ? named : await choose(session, url, named)
  // the address chose these names, unless somebody typed or picked them
  if (isAll && ref === undefined && options.as === undefined) await confirmNames(session, url, chosen)
  if (chosen.length > 1 && options.as !== undefined && new Set(chosen.map(repoOf)).size > 1)
    throw usage(
      '--as is one name, and these are several models',
      `svc import ${url}#${nameOf(chosen[0]!)} --as ns/name`
    )
  for (const model of chosen) await importOne(session, model, listing.url, options)
}

/** How many commands an advice has at most. */
const MAX_COMMANDS = 8

/** @throws CliError where nobody agrees to the names, with the commands that type them */
async function confirmNames(session: Session, url: string, models: readonly ListedModel[]): Promise<void> {
  const names = models.map(nameOf)
  const commands = names.slice(0, MAX_COMMANDS).map((name) => `svc import '${url}#${name}'`)
  const hint = commands.join(' && ') + (names.length > MAX_COMMANDS ? ' && …' : '')
  const said = `${url} calls ${models.length === 1 ? 'its model' : 'its models'} ${names.join(', ')}`
  if (!canAsk(session)) throw usage(`an import needs a name that somebody typed: ${said}`, hint)
  if (!(await saysYes(session, `${said}. Import under ${models.length === 1 ? 'this name' : 'these names'}? `)))
    throw usage('nothing was imported', hint)
}

async function importOne(session: Session, model: ListedModel, url: string, options: PublishedOptions): Promise<void> {
  const { magnet, manifest, companions, withheld } = model
  const as = options.as ?? repoOf(model)
  await importBt(session, magnet, {
    ...options,
    pin: manifest,
    // a magnet of models that were published without their address names none
    webseed: [url],
    ...(companions !== undefined && { companions: `${companions.digest}@${companions.infohash}` }),
    ...(as !== undefined && { as }),
    ...(withheld === true && { private: true })
  })
}

async function choose(session: Session, url: string, models: readonly ListedModel[]): Promise<readonly ListedModel[]> {
  const sizeOf = ({ files }: ListedModel): number => files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const names = models.map(nameOf)
  const rows = models.map((model, i) => [canAsk(session) ? `${i + 1}` : '', nameOf(model), formatBytes(sizeOf(model))])
  const wanted = await chooseQuants(session, {
    what: url,
    command: 'svc import',
    names,
    kind: 'models',
    example: `svc import '${url}#${names[0]}'`,
    table: rows,
    all: `--all for ${formatBytes(models.reduce((sum, model) => sum + sizeOf(model), 0))}`
  })
  return wanted === undefined ? models : models.filter((model) => wanted.includes(nameOf(model)))
}

const nameOf = ({ ref, name }: ListedModel): string => ref?.replace('svc:///', '') ?? name

const repoOf = ({ ref }: ListedModel): string | undefined => ref?.replace('svc:///', '').split(':', 1)[0]

/** The model itself, one of its quants, or a unique beginning is left to the question. */
const isMeant = (model: ListedModel, typed: string): boolean => nameOf(model) === typed || repoOf(model) === typed
