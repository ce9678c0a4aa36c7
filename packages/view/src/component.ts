/** Components of models by the folders that their weights are in, as pipelines and ComfyUI name these. */
const FOLDERS: Readonly<Record<string, string>> = {
  audio_encoder: 'audio-encoder',
  audio_encoders: 'audio-encoder',
  clip_vision: 'image-encoder',
  controlnet: 'controlnet',
  diffusion_models: 'diffusion-model',
  image_encoder: 'image-encoder',
  safety_checker: 'safety-checker',
  text_encoders: 'text-encoder',
  transformer: 'diffusion-model',
  unet: 'diffusion-model',
  vae: 'vae',
  vocoder: 'vocoder',
  vqmodel: 'vae'
}

/** Components by the names of single files, in lower case and without the extension. */
const NAMES: readonly (readonly [component: string, match: RegExp])[] = [
  ['vae', /^ae$|(?:^|[-._])vae(?:[-._]|$)/],
  ['image-encoder', /^clip[-_]vision/],
  ['text-encoder', /^(?:clip[-_][lgh]|u?mt5|t5xxl|t5[-_]|text[-_]encoder)/],
  ['vocoder', /vocoder|^(?:bigvgan|hifi-?gan|vocos|wavtokenizer)/]
]

/**
 * The component of a model that a file holds, by its path: `text-encoder`, `vae`, `vocoder` and the like; undefined for the model
 * itself and for files that are no weights.
 */
export function componentOf({
  name,
  kind
}: {
  readonly name: string
  readonly kind?: string | undefined
}): string | undefined {
  if (kind !== 'weights.safetensors' && kind !== 'weights.gguf') return undefined
  const folders = name.split('/').slice(0, -1)
  for (const folder of folders.reverse()) {
    const found =
      FOLDERS[
        folder
          .toLowerCase()
          .replace(/_[0-9]+$/, '')
          .replace(/^text_encoder$/, 'text_encoders')
      ]
    if (found !== undefined) return found
  }
  const base = name.slice(name.lastIndexOf('/') + 1).replace(/\.[^.]+$/, '')
  return NAMES.find(([, match]) => match.test(base.toLowerCase()))?.[0]
}
