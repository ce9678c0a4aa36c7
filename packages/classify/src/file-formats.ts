import { baseOf, folderOf } from './names.ts'

/** A format of weights that no row of the table takes, as names tell it. */
export interface FileFormat {
  /** Stable, for programs: the `weightsFormat` of an opaque artifact. */
  readonly id: string
  /** For people. */
  readonly label: string
}

interface FormatRow extends FileFormat {
  readonly match: (name: string, beside: ReadonlySet<string>) => boolean
}

const named =
  (pattern: RegExp): FormatRow['match'] =>
  (name) =>
    pattern.test(name)

/** The name with another extension. */
const sibling = (name: string, extension: string): string => name.replace(/\.[^./]*$/, extension)

/** A file that was cut to pieces to be uploaded, not a set that loaders read. */
export const PIECE = /\.gguf[.-](?:part[-_.]?\d+(?:of\d+)?|split-[a-z]{1,2}|\d{3})$/i

/** Tried from top to bottom: several formats call their weights `.bin`. */
const FORMATS: readonly FormatRow[] = [
  { id: 'split-file', label: 'pieces of a GGUF', match: named(PIECE) },
  { id: 'onnx', label: 'ONNX', match: named(/\.(?:onnx(?:[._]data(?:_\d+)?)?|ort)$/i) },
  { id: 'coreml', label: 'Core ML', match: named(/\.mlmodel$|\.(?:mlpackage|mlmodelc)\//i) },
  {
    id: 'openvino',
    label: 'OpenVINO',
    match: (name, beside) =>
      (/\.bin$/i.test(name) && beside.has(sibling(name, '.xml'))) ||
      (/\.xml$/i.test(name) && beside.has(sibling(name, '.bin')))
  },
  { id: 'ggml', label: 'whisper.cpp', match: named(/(?:^|\/)[^/]*ggml[^/]*\.bin$/i) },
  {
    id: 'ctranslate2',
    label: 'CTranslate2 (faster-whisper)',
    match: (name, beside) =>
      baseOf(name) === 'model.bin' &&
      [
        'vocabulary.json',
        'vocabulary.txt',
        'shared_vocabulary.json',
        'shared_vocabulary.txt',
        'source_vocabulary.json'
      ].some((vocabulary) => beside.has(folderOf(name) + vocabulary))
  },
  { id: 'litert', label: 'LiteRT', match: named(/\.(?:tflite|litertlm|task)$/i) },
  { id: 'executorch', label: 'ExecuTorch', match: named(/\.pte$/i) },
  { id: 'mnn', label: 'MNN', match: named(/\.mnn(?:\.weight)?$/i) },
  { id: 'tensorrt', label: 'TensorRT', match: named(/\.(?:engine|plan|trt)$/i) },
  { id: 'nemo', label: 'NeMo', match: named(/\.nemo$/i) },
  { id: 'keras', label: 'Keras', match: named(/\.(?:h5|keras)$/i) },
  { id: 'other-framework', label: 'TensorFlow, JAX or NumPy', match: named(/\.(?:pb|msgpack|npz)$/i) },
  { id: 'pickle', label: 'a pickle', match: named(/\.(?:bin|pt|pth|ckpt|pkl|pickle|joblib|dill)$/i) }
]

/** The formats of weights among files that no row of the table takes, in the order of the rows, with the files of each. */
export function formatsIn(names: readonly string[]): readonly (FileFormat & { readonly names: readonly string[] })[] {
  const beside = new Set(names)
  const found = Map.groupBy(names, (name) => FORMATS.find(({ match }) => match(name, beside)))
  return FORMATS.flatMap((row) => {
    const own = found.get(row)
    return own === undefined ? [] : [{ id: row.id, label: row.label, names: own }]
  })
}
