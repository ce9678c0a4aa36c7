import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { hubCommit, isInLargeFileStorage, repoFolder } from '../layout.ts'
import { formatTree, type TreeFile, treeAt, treeFile } from '../tree-listing.ts'
import { COMFYUI_USES } from './comfyui.ts'
import type { ShownFile, StandingFile, StandingLayout, StandingModel, WantedEntry } from './model.ts'
import { SourceError } from './sources.ts'

/** The tool's folder. */
interface StandingPlace {
  readonly folder: string
  /** Whether its file system has symbolic links. */
  readonly hasLinks: boolean
  /** False for a file of the store that could not be read before, and has not changed. */
  readonly admits: (model: StandingModel, file: StandingFile) => boolean
}

type Lay = (models: readonly StandingModel[], place: StandingPlace) => readonly WantedEntry[]

/** The entries that a tool reads, for all models that it can load. The first entry at a path counts. */
export const wantedBy = (
  layout: StandingLayout,
  models: readonly StandingModel[],
  place: StandingPlace
): readonly WantedEntry[] => LAYOUTS[layout](models, place)

const shown = (at: string, file: ShownFile, group?: string): WantedEntry => ({
  at,
  entry: { file },
  ...(group !== undefined && { group })
})
const lastText = (at: string, text: string): WantedEntry => ({ at, entry: { text }, isLast: true })

const baseOf = (name: string): string => name.slice(name.lastIndexOf('/') + 1)
const ggufs = ({ files }: StandingModel): readonly StandingFile[] => files.filter(({ kind }) => kind === 'weights.gguf')
const withRole = ({ files }: StandingModel, role: string): readonly StandingFile[] =>
  files.filter((file) => file.kind === 'weights.aux' && file.role === role && file.name.endsWith('.gguf'))
const flatName = ({ ns, name, quant }: StandingModel): string => `${ns}--${name}--${quant}`

/** The router of llama-server wants this beginning. */
const projectorName = (name: string): string =>
  baseOf(name).startsWith('mmproj') ? baseOf(name) : `mmproj-${baseOf(name)}`

/** The context that a preset asks for at most, in tokens. */
const PRESET_CONTEXT = 32_768

/** `--models-dir`: a file at the top, or a folder for a model of several; `--models-preset`: `models.ini`. */
const llama: Lay = (models, { folder }) => {
  const wanted: WantedEntry[] = []
  const sections: string[] = []
  for (const model of models) {
    const weights = ggufs(model)
    if (weights.length === 0) continue
    const projector = withRole(model, 'vision-projector')[0]
    const isAlone = weights.length === 1 && projector === undefined
    const group = isAlone ? undefined : flatName(model)
    const places = weights.map((file) =>
      group === undefined ? `${flatName(model)}.gguf` : `${group}/${baseOf(file.name)}`
    )
    for (const [i, file] of weights.entries()) wanted.push(shown(places[i]!, file, group))
    const mmproj = projector && `${group}/${projectorName(projector.name)}`
    if (projector !== undefined && mmproj !== undefined) wanted.push(shown(mmproj, projector, group))
    // beside the weights, the router would take it for the model
    const draft = withRole(model, 'draft')[0]
    if (draft !== undefined) wanted.push(shown(`drafts/${flatName(model)}/${baseOf(draft.name)}`, draft))
    const { contextLength } = model
    const options = {
      model: join(folder, places[0]!),
      ...(mmproj !== undefined && { mmproj: join(folder, mmproj) }),
      ...(draft !== undefined && { 'model-draft': join(folder, `drafts/${flatName(model)}/${baseOf(draft.name)}`) }),
      ...(contextLength !== undefined && { 'ctx-size': Math.min(contextLength, PRESET_CONTEXT) })
    }
    const lines = Object.entries(options).map(([key, value]) => `${key} = ${value}`)
    sections.push([`[${model.ns}/${model.name}:${model.quant}]`, ...lines, ''].join('\n'))
  }
  const head = '; Written by svc, which writes it anew whenever a model comes or goes.\nversion = 1\n\n'
  return [...wanted, lastText('models.ini', head + sections.join('\n'))]
}

/** `<publisher>/<model>/*.gguf`; a split model has a folder of its own, which appears at once. */
const lmstudio: Lay = (models) =>
  models.flatMap((model) => {
    const weights = ggufs(model)
    if (weights.length === 0) return []
    const beside = withRole(model, 'vision-projector')
    const group = weights.length === 1 ? undefined : `${model.ns}/${model.name}-${model.quant}`
    const folder = group ?? `${model.ns}/${model.name}`
    return [
      ...beside.map((file) => shown(`${folder}/${projectorName(file.name)}`, file, group)),
      ...weights.map((file) => shown(`${folder}/${baseOf(file.name)}`, file, group))
    ]
  })

/** Blobs and manifests, under the host `svc`: Ollama knows the models as `svc/ns/name:quant`. */
const ollama: Lay = (models) =>
  models.flatMap((model) => {
    const { ollama: form, files } = model
    if (form === undefined) return []
    const byDigest = new Map(files.map((file) => [file.digest, file]))
    const blobAt = (digest: string): string => `blobs/${digest.replace(':', '-')}`
    const layers = form.layers.flatMap((digest) => {
      const file = byDigest.get(digest)
      return file === undefined ? [] : [shown(blobAt(digest), file)]
    })
    if (layers.length < form.layers.length) return []
    // its namespaces have no dots
    const at = ['manifests', 'svc', model.ns.replaceAll('.', '-'), model.name, model.quant].join('/')
    return [...layers, { at: blobAt(form.configDigest), entry: { text: form.config } }, lastText(at, form.manifest)]
  })

const SPLIT_NAME = /^split_files\/([a-z0-9_]+)\//
const USES_OF_ROLES: Readonly<Record<string, string>> = {
  'text-encoder': 'text_encoders',
  'image-encoder': 'clip_vision',
  vae: 'vae',
  adapter: 'loras'
}

/** The folder of ComfyUI for a file; undefined where nothing tells it. */
function useOf(file: StandingFile, { files, hasConfig }: StandingModel): string | undefined {
  if (!file.kind.startsWith('weights') && file.kind !== 'adapter') return undefined
  const folder = SPLIT_NAME.exec(file.name)?.[1] ?? file.name.split('/').at(-2)
  const named = COMFYUI_USES.find((use) => use === folder)
  if (named !== undefined) return named
  if (file.role !== undefined) return USES_OF_ROLES[file.role]
  const isWhole = file.kind === 'weights.safetensors' && hasConfig !== true
  return isWhole && files.filter(({ kind }) => kind === 'weights.safetensors').length === 1 ? 'checkpoints' : undefined
}

/** Folders by use, and the file that names them for ComfyUI's `--extra-model-paths-config`. */
const comfyui: Lay = (models, { folder }) => {
  const uses = new Set<string>()
  const wanted: WantedEntry[] = []
  for (const model of models)
    for (const file of model.files) {
      const use = useOf(file, model)
      if (use === undefined) continue
      uses.add(use)
      const group = `${use}/${model.ns}-${model.name}-${model.quant}`
      wanted.push(shown(`${group}/${baseOf(file.name)}`, file, group))
    }
  const lines = [
    '# Written by svc, which writes it anew; start ComfyUI with --extra-model-paths-config and this file.',
    'svc:',
    // a JSON string is a valid YAML string
    `  base_path: ${JSON.stringify(folder)}`,
    ...[...uses].sort().map((use) => `  ${use}: ${use}`),
    ''
  ]
  return [...wanted, lastText('extra_model_paths.yaml', lines.join('\n'))]
}

/**
 * A hub cache: blobs by etag, snapshots by commit, and `refs/main` of a repository's current commit. The listing of a
 * commit makes the client take what it lists for all that there is: only a commit that is here whole has one.
 */
const hf: Lay = (models, { hasLinks, admits }) => {
  const listings = new Map<string, { listed: readonly string[]; files: Map<string, TreeFile> }>()
  const entries = models.flatMap((model) => {
    const repo = model.hub?.repo ?? `${model.ns}/${model.name}`
    if (!/^[\w.-]+(?:\/[\w.-]+)?$/.test(repo) || repo.includes('--') || repo.includes('..')) return []
    const commit = hubCommit(repo, model.hub?.commit)
    const top = repoFolder(repo)
    const tree = treeAt(top, commit)
    if (model.hub?.listed !== undefined && !listings.has(tree))
      listings.set(tree, { listed: model.hub.listed, files: new Map() })
    const files = model.files.flatMap((file) => {
      if (!admits(model, file)) return []
      const etag = etagOf(file)
      listings.get(tree)?.files.set(file.name, treeFile(etag, file.sizeBytes))
      const at = `${top}/snapshots/${commit}/${file.name}`
      if (!hasLinks) return [shown(at, file)]
      const blob = `${top}/blobs/${etag}`
      return [shown(blob, file), { at, entry: { link: relative(dirname(at), blob) } }]
    })
    return [...files, lastText(`${top}/refs/main`, commit)]
  })
  const whole = [...listings].filter(([, { listed, files }]) => listed.every((name) => files.has(name)))
  return [...entries, ...whole.map(([at, { files }]) => lastText(at, formatTree(files)))]
}

/** @throws SourceError */
function etagOf({ name, sizeBytes, digest, path }: StandingFile): string {
  if (!isInLargeFileStorage(name, sizeBytes)) return hashOf(path, 'git')
  return digest?.slice(7) ?? hashOf(path, 'sha256')
}

const MAX_ETAGS = 100_000
/** By path: blobs do not change, and unpacked files are made anew under other paths. */
const etags = new Map<string, string>()

function hashOf(path: string, by: 'git' | 'sha256'): string {
  const known = etags.get(path)
  if (known !== undefined) return known
  const bytes = readSource(path)
  const hash = by === 'git' ? createHash('sha1').update(`blob ${bytes.length}\0`) : createHash('sha256')
  const etag = hash.update(bytes).digest('hex')
  if (etags.size >= MAX_ETAGS) etags.clear()
  etags.set(path, etag)
  return etag
}

function readSource(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new SourceError(path, error)
  }
}

const LAYOUTS: Readonly<Record<StandingLayout, Lay>> = { hf, llama, lmstudio, comfyui, ollama }
