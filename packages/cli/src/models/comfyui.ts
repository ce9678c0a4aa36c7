import { lstat, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ifAbsent } from '@svc/internal-errors'
import { listFolderIfPresent, makeFolders } from '@svc/internal-files'
import { parseRef } from '@svc/ref'
import { COMFYUI_USES } from '@svc/view'
import { usage } from '../errors.ts'

export type ComfyuiUse = (typeof COMFYUI_USES)[number]

/** Repositories for ComfyUI have `split_files/<use>/…`: their views lie below this folder, and the names tell the uses. */
const SPLIT = 'split_files'
const SPLIT_NAME = /^split_files\/[a-z0-9_]+\//
const USE = /^[a-z0-9_]+$/

const FILE = 'extra_model_paths.yaml'
/** The line that identifies a file of ours; other files are left alone. */
const HEAD =
  '# Written by svc view --comfyui, which writes it anew; start ComfyUI with --extra-model-paths-config and this file.'

/** The folder below the base for a model with these files. @throws CliError if nothing tells the use */
export function comfyuiFolder(use: ComfyuiUse | true, names: readonly string[]): string {
  if (names.some((name) => SPLIT_NAME.test(name))) return SPLIT
  if (use !== true) return use
  throw usage('the use of the model cannot be derived from its files', `--comfyui ${COMFYUI_USES.join('|')}`)
}

/** The place of a model's view below `base`. ComfyUI shows the folder's name in its lists. */
export function comfyuiPlace(base: string, use: string, canonicalRef: string): string {
  const { ns, name, quant, digest } = parseRef(canonicalRef)
  return join(base, use, [ns, name, quant ?? digest?.slice(7, 19)].join('-'))
}

/** Creates the parent folder of a view. @throws CliError if `base` has such a configuration that is not ours */
export async function prepareComfyui(base: string, use: string): Promise<void> {
  await makeFolders(join(base, use))
  await checkOwn(join(base, FILE))
}

/** Writes the file that adds the folders below `base` to ComfyUI. @returns its path */
export async function writeComfyuiPaths(base: string): Promise<string> {
  const path = join(base, FILE)
  await checkOwn(path)
  const folders = new Map<string, string[]>()
  const add = (use: string, folder: string): void => void folders.set(use, [...(folders.get(use) ?? []), folder])
  for (const use of await foldersIn(base)) if (COMFYUI_USES.some((each) => each === use)) add(use, use)
  for (const model of await foldersIn(join(base, SPLIT)))
    for (const use of await foldersIn(join(base, SPLIT, model, SPLIT)))
      if (USE.test(use)) add(use, `${SPLIT}/${model}/${SPLIT}/${use}`)
  // a JSON string is a valid YAML string, whatever characters the path contains; ComfyUI takes a path per line of it
  const yamlOf = (paths: readonly string[]): string =>
    paths.length === 1 ? paths[0]! : JSON.stringify(paths.join('\n'))
  const lines = [...folders].sort().map(([use, paths]) => `  ${use}: ${yamlOf(paths)}`)
  const draft = `${path}.${process.pid}.tmp`
  await writeFile(draft, [HEAD, 'svc:', `  base_path: ${JSON.stringify(base)}`, ...lines, ''].join('\n'))
  await rename(draft, path)
  return path
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await listFolderIfPresent(path)
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

async function checkOwn(path: string): Promise<void> {
  const found = await lstat(path).catch(ifAbsent)
  if (found === undefined) return
  if (found.isFile() && (await readFile(path, 'utf8')).startsWith(HEAD)) return
  throw usage(`svc did not write ${path}`, 'choose another folder for the models')
}
