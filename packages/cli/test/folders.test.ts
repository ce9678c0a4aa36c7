// One repository of each kind; forty in folders.slow.ts.
import { testFolders } from './folders.ts'

testFolders(12)
