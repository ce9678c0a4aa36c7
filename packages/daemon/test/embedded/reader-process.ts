// Opens a model of the store at argv[2] beside its owner, says so, and keeps it.
import { readLibrary } from '../../../library/src/embedded/read-library.ts'

const reader = await readLibrary({ root: process.argv[2]! })
const { files } = await reader.open(process.argv[3]!)
// The other model of the test has the same config
const own = files.filter(({ kind }) => kind !== 'config')
process.stdout.write(`${JSON.stringify(own.map(({ path }) => path))}\n`)
process.stdin.resume()
