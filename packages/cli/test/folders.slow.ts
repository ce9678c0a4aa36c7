// Forty made repositories, three or four of each kind, in variations.
import { testFolders } from './folders.ts'

testFolders(40)
