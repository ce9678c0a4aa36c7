import { programInPath } from '@svc/internal-files'

/** A model as runtimes take it. All paths are absolute. */
export interface ModelToRun {
  readonly format: 'gguf' | 'folder'
  /** Of the GGUF or its first part, or of the folder. */
  readonly path: string
  readonly isSplit: boolean
  readonly projector: string | undefined
  readonly draft: string | undefined
  /** Undefined where the memory that it takes is unknown: the runtime decides. */
  readonly contextTokens: number | undefined
  /** `ns/name:quant` */
  readonly ref: string
}

/** A program that loads models, and how it is called. */
export interface Runtime {
  readonly name: RuntimeName
  readonly program: string
  readonly format: ModelToRun['format']
  readonly takesSplit: boolean
  /** What comes after the program's name, before the arguments of the user. */
  args(model: ModelToRun): string[]
}

export const RUNTIME_NAMES = ['llama-server', 'llama-cli', 'ollama', 'vllm', 'mlx_lm'] as const
export type RuntimeName = (typeof RUNTIME_NAMES)[number]

const option = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [name, `${value}`]

/** Options of every program of llama.cpp. */
const llamaArgs = ({ path, draft, contextTokens }: ModelToRun): string[] => [
  '-m',
  path,
  ...option('--model-draft', draft),
  ...option('-c', contextTokens)
]

/** In the order in which they are tried. */
export const RUNTIMES: readonly Runtime[] = [
  {
    name: 'llama-server',
    program: 'llama-server',
    format: 'gguf',
    takesSplit: true,
    args: (model) => [...llamaArgs(model), ...option('--mmproj', model.projector)]
  },
  { name: 'llama-cli', program: 'llama-cli', format: 'gguf', takesSplit: true, args: llamaArgs },
  // it has to be given a copy first: ollama.ts
  { name: 'ollama', program: 'ollama', format: 'gguf', takesSplit: false, args: ({ ref }) => ['run', ref] },
  {
    name: 'vllm',
    program: 'vllm',
    format: 'folder',
    takesSplit: true,
    args: ({ path, contextTokens }) => ['serve', path, ...option('--max-model-len', contextTokens)]
  },
  {
    name: 'mlx_lm',
    program: 'mlx_lm.server',
    format: 'folder',
    takesSplit: true,
    args: ({ path }) => ['--model', path]
  }
]

/** Why a runtime cannot load a model; undefined if it can. */
export function misfit(
  runtime: Runtime,
  { format, isSplit }: Pick<ModelToRun, 'format' | 'isSplit'>
): string | undefined {
  const what = format === 'gguf' ? 'a GGUF' : 'a folder of safetensors'
  if (runtime.format !== format) return `${runtime.name} does not load ${what}`
  return isSplit && !runtime.takesSplit ? `${runtime.name} does not load a split GGUF` : undefined
}

/** The runtimes in PATH. */
export const installedRuntimes = (env: { readonly PATH?: string | undefined }): Runtime[] =>
  RUNTIMES.filter(({ program }) => programInPath(program, env) !== undefined)

/** How to get a runtime for a format. */
export const HOW_TO_GET: Readonly<Record<ModelToRun['format'], string>> = {
  gguf: 'get llama.cpp (brew install llama.cpp, or a release of github.com/ggml-org/llama.cpp) or Ollama (ollama.com), so that llama-server or ollama is in PATH',
  folder: 'get vLLM (pip install vllm), or on a Mac MLX (pip install mlx-lm), so that vllm or mlx_lm.server is in PATH'
}
