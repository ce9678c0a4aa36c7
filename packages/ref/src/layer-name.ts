/** What a layer without a name in its annotations is, by its media type. */
interface LayerForm {
  readonly type: RegExp
  readonly name: (base: string, position: string) => string
  /** Several of them are the shards of one model, in order. */
  readonly isSharded?: boolean
}

const OLLAMA = 'application/vnd\\.ollama\\.image\\.'
const DOCKER = 'application/vnd\\.docker\\.ai\\.'
const typed = (prefix: string, rest: string): RegExp => new RegExp(`^${prefix}${rest}$`)

const projector = (base: string, position: string): string => `mmproj-${base}${position}.gguf`
const adapter = (base: string, position: string): string => `adapter-${base}${position}.gguf`
const licence = (_: string, position: string): string => `LICENSE${position}`
const gguf = (base: string, position: string): string => `${base}${position}.gguf`

/** In the order in which a model's files are named. */
const FORMS: readonly LayerForm[] = [
  { type: typed(OLLAMA, 'model'), name: gguf, isSharded: true },
  { type: typed(OLLAMA, 'projector'), name: projector },
  { type: typed(OLLAMA, 'adapter'), name: adapter },
  { type: typed(OLLAMA, 'template'), name: (_, position) => `template${position}` },
  { type: typed(OLLAMA, 'license'), name: licence },
  { type: typed(OLLAMA, 'params'), name: (_, position) => `params${position}.json` },
  { type: typed(OLLAMA, 'system'), name: (_, position) => `system${position}.txt` },
  { type: typed(DOCKER, 'gguf\\.v3'), name: gguf, isSharded: true },
  { type: typed(DOCKER, 'safetensors'), name: (base, position) => `${base}${position}.safetensors`, isSharded: true },
  { type: typed(DOCKER, 'mmproj.*'), name: projector },
  { type: typed(DOCKER, 'gguf\\.v3\\.lora.*'), name: adapter },
  { type: typed(DOCKER, 'chat\\.template\\.jinja'), name: (_, position) => `chat_template${position}.jinja` },
  { type: typed(DOCKER, 'license'), name: licence }
]

/** The end of a shard's name, before the extension. */
const shardSuffix = (part: number, count: number): string =>
  `-${String(part).padStart(5, '0')}-of-${String(count).padStart(5, '0')}`

/**
 * The names of layers that have none: those of Ollama's registry, and Docker's models from before annotations.
 * @param mediaTypes of all such layers of a manifest, in order; parameters after `;` do not count
 * @param base the name of a weights file without its extension, as {@link layerBase} makes it
 * @returns for each layer its file's name; undefined for a type that is no file of a model
 */
export function layerNames(mediaTypes: readonly string[], base: string): readonly (string | undefined)[] {
  const forms = mediaTypes.map((text) => {
    const type = text.split(';', 1)[0]!
    return FORMS.find((form) => form.type.test(type))
  })
  const seen = new Map<LayerForm, number>()
  return forms.map((form) => {
    if (form === undefined) return undefined
    const number = (seen.get(form) ?? 0) + 1
    seen.set(form, number)
    const count = forms.filter((each) => each === form).length
    const isOnly = form.isSharded === true ? count === 1 : number === 1
    return form.name(base, isOnly ? '' : form.isSharded === true ? shardSuffix(number, count) : `-${number}`)
  })
}

/** Whether a layer is a single tensor, which only the tool that stored it reads. */
export const isTensorLayer = (mediaType: string): boolean =>
  /^application\/vnd\.ollama\.image\.tensor(?:;|$)/.test(mediaType)

/**
 * The name of a weights file without extension: the model, its tag unless that is `latest`, and the quant, unless the
 * tag ends with it. `llama3.2`, `1b` and `Q8_0` make `llama3.2-1b-q8_0`.
 */
export function layerBase(model: string, tag: string, quant?: string): string {
  const named = tag === 'latest' || tag === '' ? model : `${model}-${tag}`
  const base = named.toLowerCase().replace(/[^a-z0-9._-]+/g, '-')
  const token = /^[A-Za-z0-9_]{2,20}$/.test(quant ?? '') ? quant!.toLowerCase() : undefined
  return token === undefined || base.endsWith(`-${token}`) ? base : `${base}-${token}`
}
