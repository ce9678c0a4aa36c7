import { lstat, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders } from '@svc/internal-files'
import { parseRef } from '@svc/ref'
import { usage } from './errors.ts'

/** Folders that ComfyUI looks in, by the use of their models; keys of its `extra_model_paths.yaml`. */
export const COMFYUI_USES = [
  'checkpoints',
  'clip_vision',
  'controlnet',
  'diffusion_models',
  'embeddings',
  'loras',
  'style_models',
  'text_encoders',
  'upscale_models',
  'vae'
] as const
export type ComfyuiUse = (typeof COMFYUI_USES)[number]

const FILE = 'extra_model_paths.yaml'
/** The line that identifies a file of ours; other files are left alone. */
const HEAD =
  '# Written by svc view --comfyui, which writes it anew; start ComfyUI with --extra-model-paths-config and this file.'

/** The place of a model's view below `base`. ComfyUI shows the folder's name in its lists. */
export function comfyuiPlace(base: string, use: ComfyuiUse, canonicalRef: string): string {
  const { ns, name, quant, digest } = parseRef(canonicalRef)
  return join(base, use, [ns, name, quant ?? digest?.slice(7, 19)].join('-'))
}

/**
 * Creates the parent folder of a view for `use`. @throws CliError when `base` has a file of the configuration's name
 * that is not ours
 */
export async function prepareComfyui(base: string, use: ComfyuiUse): Promise<void> {
  await makeFolders(join(base, use))
  await checkOwn(join(base, FILE))
}

/**
 * Writes the file that adds the folders below `base` to ComfyUI; its own tree is unchanged. @returns the file's path
 */
export async function writeComfyuiPaths(base: string): Promise<string> {
  const path = join(base, FILE)
  await checkOwn(path)
  const entries = await readdir(base, { withFileTypes: true })
  const uses = COMFYUI_USES.filter((use) => entries.some((entry) => entry.isDirectory() && entry.name === use))
  // a JSON string is a valid YAML string, whatever characters the path contains
  const lines = [HEAD, 'svc:', `  base_path: ${JSON.stringify(base)}`, ...uses.map((use) => `  ${use}: ${use}`), '']
  const draft = `${path}.${process.pid}.tmp`
  await writeFile(draft, lines.join('\n'))
  await rename(draft, path)
  return path
}

async function checkOwn(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found === undefined) return
  if (found.isFile() && (await readFile(path, 'utf8')).startsWith(HEAD)) return
  throw usage(`${path} is not one that svc wrote`, 'choose a folder of its own for models from here')
}
