// Forty made repositories, three or four of each kind, in variations.
import { madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

testFolders(madeRepositories(40))
