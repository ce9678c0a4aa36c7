export { DIRECTORY, FILES } from './files.ts'
