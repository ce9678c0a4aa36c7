// Loads a model by its reference with node-llama-cpp, and continues a text: `answer.ts ROOT svc:///ns/name:quant TEXT`.
import { readLibrary } from '@svc/library'
import { getLlama, LlamaCompletion } from 'node-llama-cpp'

const [root, ref, text] = process.argv.slice(2)
const library = await readLibrary({ root: root! })
const { files } = await library.open(ref!)
const weights = files.find(({ kind }) => kind === 'weights.gguf')!

const llama = await getLlama({ build: 'never', progressLogs: false })
const model = await llama.loadModel({ modelPath: weights.path })
const context = await model.createContext()
const completion = new LlamaCompletion({ contextSequence: context.getSequence() })
console.log(await completion.generateCompletion(text!, { maxTokens: 8 }))

await llama.dispose()
await library.close()
