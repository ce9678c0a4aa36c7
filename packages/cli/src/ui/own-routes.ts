import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { BridgeRefusal, openOnDesktop, textOf } from '@svc/internal-bridge'
import { isDigest } from '@svc/ref'
import { examine } from '../commands/doctor.ts'
import { storeToken } from '../commands/login.ts'
import { planWithFit } from '../commands/remote.ts'
import { type HubSource, tryParseHubAddress, tryParseHubSource } from '../hub/hub-source.ts'
import { adviceOf, recommendedQuant } from '../hub/plan-table.ts'
import { type DiskUse, readDiskUse } from '../models/disk-use.ts'
import { readManifestBlob } from '../models/documents.ts'
import { asRepo, canonicalRef, shortRef } from '../models/reference.ts'
import { loadPath, madeView } from '../models/runtime-view.ts'
import { unknownHere } from '../models/unknown-here.ts'
import { adoptFound, toolsHere } from './adoption.ts'
import { facts } from './facts.ts'
import { readLog } from './log.ts'
import type { PageRequest, PageRoute } from './page-route.ts'

/** What the page needs besides the routes of the daemon; keys are method and path. */
export const OWN_ROUTES: Readonly<Record<string, PageRoute>> = {
  'GET bridge/disk': ({ session }) => readDiskUse(session),
  'GET bridge/removal': removal,
  'GET bridge/doctor': async ({ session }) => {
    const findings = await examine(session)
    return { ok: findings.every(({ level }) => level !== 'bad'), findings }
  },
  'POST bridge/plan': async ({ session, body }) => {
    const source = tryParseHubSource(textOf(body.source))
    if (source === undefined) throw new BridgeRefusal(400, 'E_BAD_REQUEST', 'this is no repository of the hub')
    const plan = await planWithFit(session, source, 0)
    const { machine } = plan
    const recommended = recommendedQuant(plan, machine)
    return { ...plan, source: hubSourceOf(source), recommended, advice: adviceOf(plan, machine) }
  },
  'GET bridge/facts': facts,
  'GET bridge/log': ({ session }) => readLog(session),
  'GET bridge/tools': toolsHere,
  'POST bridge/adopt': adoptFound,
  'POST bridge/login': async ({ session, body }) => {
    const mayReplace = async (): Promise<boolean> => body.replace === true
    return (await storeToken(session, textOf(body.token).trim(), { check: true, mayReplace })).account
  },
  'POST bridge/source': async ({ body }) => sourceOf(textOf(body.text).trim()),
  'GET bridge/commands': commands,
  'POST bridge/path': async ({ session, body }) => {
    const view = await madeView(session, textOf(body.ref))
    return { folder: view.folder, path: loadPath(view, undefined) }
  },
  'POST bridge/open-folder': async ({ session, body }) => {
    const { folder } = await madeView(session, textOf(body.ref))
    return { folder, opened: openOnDesktop(session.terminal.env, folder) }
  }
}

/** What the removal of names frees, unless a tag, a view or a job keeps it; of several at least, as they may share bytes. */
async function removal({ session, query }: PageRequest): Promise<unknown> {
  const { models, repositories } = await readDiskUse(session)
  const uses: DiskUse[] = []
  for (const text of query.getAll('ref').map(textOf)) {
    const repo = asRepo(text)
    const ref = repo ?? shortRef(await canonicalRef(session, text))
    const use = (repo === undefined ? models : repositories).find((each) => each.ref === ref)
    if (use === undefined) throw unknownHere(ref, [], { isWanted: false })
    uses.push(use)
  }
  const isOf = (ref: string): boolean => uses.some((use) => ref === use.ref || ref.startsWith(`${use.ref}:`))
  return {
    quants: models.flatMap(({ ref }) => (isOf(ref) ? [ref] : [])),
    freeableBytes: uses.reduce((sum, { aloneBytes }) => sum + aloneBytes, 0),
    sharedBytes: uses.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0)
  }
}

const hubSourceOf = ({ repo, revision, quant, file }: HubSource) => ({
  repo,
  ...(revision !== undefined && { revision }),
  ...(quant !== undefined && { quants: quant.split(',') }),
  ...(file !== undefined && { file })
})

const IMAGE =
  /^(?:oci:\/\/)?((?:localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+(?=:\d))(?::\d{1,5})?\/[\w./-]+(?::[\w.-]+|@sha256:[0-9a-f]{64}))$/
const COMPANIONS = /^(sha256:[0-9a-f]{64})@(btmh:1220[0-9a-f]{64})$/

/** A magnet link, with the options of the command around it that `svc share` or `svc publish` prints. */
function sharedModel(magnet: string, command: string): object {
  const options = command.replace(magnet, '')
  const valuesOf = (name: string): readonly string[] =>
    [...options.matchAll(new RegExp(`--${name}[= ]+['"]?([^\\s'"]+)`, 'g'))].map(([, value]) => value!)
  const manifestDigest = valuesOf('pin').find(isDigest)
  const [, digest, infohash] = COMPANIONS.exec(valuesOf('companions')[0] ?? '') ?? []
  const [as] = valuesOf('as')
  const lists = { webseeds: valuesOf('webseed'), trackers: valuesOf('tracker'), peers: valuesOf('peer') }
  return {
    magnet,
    ...(manifestDigest !== undefined && { manifestDigest }),
    ...(digest !== undefined && { companions: { digest, infohash } }),
    ...Object.fromEntries(Object.entries(lists).filter(([, values]) => values.length > 0)),
    ...(as !== undefined && { as }),
    ...(/--private(?:\s|$)/.test(options) && { private: true })
  }
}

/** What nobody looks for on a hub: a path of this machine, perhaps of another system, or a file. */
const LIKE_A_PATH = /^(?:\.{1,2}\/|~|[a-z]:[\\/])|^[^:]*\.(?:gguf|safetensors)$/i

/** The nearest folder above a path that does not exist. */
async function folderAbove(path: string): Promise<string | undefined> {
  for (let folder = dirname(path); folder.startsWith('/'); folder = dirname(folder))
    if ((await stat(folder).catch(() => undefined))?.isDirectory() === true) return folder
  return undefined
}

/** Recognizes a text that somebody pastes. */
async function sourceOf(text: string): Promise<unknown> {
  const magnet = /magnet:\?[^\s'"]+/.exec(text)?.[0]
  if (magnet !== undefined) return { kind: 'bt', ...sharedModel(magnet, text) }
  const path = text.replace(/^file:\/\//, '').replace(/^~(?=\/)/, homedir())
  if (path.startsWith('/') || LIKE_A_PATH.test(path)) {
    const facts = path.startsWith('/') ? await stat(path).catch(() => undefined) : undefined
    return facts === undefined
      ? { kind: 'absent', path, above: await folderAbove(path) }
      : { kind: 'local', path, isFolder: facts.isDirectory() }
  }
  const image = tryParseHubAddress(text) === undefined ? IMAGE.exec(text)?.[1] : undefined
  if (image !== undefined) return { kind: 'oci', image }
  const source = tryParseHubSource(text)
  return source === undefined ? { kind: 'unknown' } : { kind: 'hf', ...hubSourceOf(source) }
}

/** Commands for the kinds of files that the manifest lists. References need no quotes in a shell. */
async function commands({ session, query }: PageRequest): Promise<unknown> {
  const resolved = await session.client.resolve(await canonicalRef(session, textOf(query.get('ref'))))
  const ref = shortRef(resolved.ref)
  const { files = [] } = await readManifestBlob(session.client, resolved.manifestDigest)
  const has = (kind: string): boolean => files.some((file) => file.kind === kind)
  const path = `"$(svc path ${ref})"`
  const folder = `"$(svc path ${ref} --dir)"`
  // of several, the path of one would be ambiguous
  const option = (name: string, fragment: string, role: string): string =>
    files.filter((file) => file.role === role).length === 1 ? ` ${name} "$(svc path '${ref}#${fragment}')"` : ''
  const beside = option('--mmproj', 'mmproj', 'vision-projector') + option('--model-draft', 'draft', 'draft')
  if (has('weights.gguf'))
    return {
      commands: [
        {
          runtime: 'llama.cpp',
          command: `llama-server -m ${path}${beside}`
        },
        {
          runtime: 'Ollama',
          command: `echo "FROM $(svc path ${ref})" > Modelfile && ollama create ${resolved.name} -f Modelfile`
        }
      ]
    }
  return {
    commands: [
      { runtime: 'vLLM', command: `vllm serve ${folder}` },
      {
        runtime: 'transformers',
        command: `from svc_client import Client\nmodel = AutoModelForCausalLM.from_pretrained(Client().folder("${ref}"))`
      }
    ]
  }
}
