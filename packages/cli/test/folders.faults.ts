// Forty generated repositories, three or four variants of each kind.
import { madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

testFolders(madeRepositories(40))
