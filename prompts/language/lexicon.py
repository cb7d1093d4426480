"""Closed classes of English words, and a few general semantic classes that decide what excludes what."""


def bag(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# --- spelling -----------------------------------------------------------------------------------------

COLLOQUIAL = {
    "im": "I 'm", "ive": "I 've", "dont": "do n't", "doesnt": "does n't", "didnt": "did n't",
    "cant": "can n't", "cannot": "can not", "wont": "will n't", "isnt": "is n't", "arent": "are n't",
    "wasnt": "was n't", "werent": "were n't", "havent": "have n't", "hasnt": "has n't", "hadnt": "had n't",
    "wouldnt": "would n't", "couldnt": "could n't", "shouldnt": "should n't", "youre": "you 're",
    "theyre": "they 're", "hes": "he 's", "shes": "she 's", "thats": "that 's", "whats": "what 's",
    "gonna": "going to", "wanna": "want to", "gotta": "got to", "u": "you", "ur": "your", "r": "are",
    "bday": "birthday", "bf": "boyfriend", "gf": "girlfriend", "hubby": "husband", "fav": "favourite",
    "fave": "favourite", "atm": "right now", "rn": "right now", "pls": "please", "plz": "please",
    "thx": "thanks", "ty": "thanks", "b/c": "because", "cuz": "because", "yrs": "years", "yr": "year",
    "mum's": "mum 's", "theres": "there 's", "wasn": "was", "idk": "I do n't know", "kinda": "rather",
    "veggie": "vegetarian", "i": "I", "gotten": "got", "tmrw": "tomorrow", "appt": "appointment",
}  # fmt: skip

ITS_IS = bag(
    "a an the on at in not actually my your called named really been just now all so very for from to too "
    "going gonna been also still always never about like 1 2 3"
)
"""Words before which `its` can only be `it's`."""

ITS_OBJECTS = bag("me us you him them my our a the")

BARE_NOUNS = bag(
    "coffee tea water music yoga meat milk bread sugar work school life love time money traffic food oil "
    "gold silver iron wood sand glass paper plastic metal air fire light sound energy gravity blood honey "
    "butter garlic sunlight electricity oxygen steel cotton wool weather rain snow history math science "
    "art nature sleep exercise health news cheese chocolate wine beer rice fruit pizza pasta chess tennis "
    "football soccer golf fish chicken beef pork salt god man woman"
)
"""Nouns that need no determiner in the singular, so that a capital at the start does not make them names."""

BARE_KIN = bag("mom mum dad mommy mummy daddy grandma grandpa granny grandmother grandfather nana")
"""Kin that need no possessive to be the user's own."""

IRREGULAR_PARTS_OF_SPEECH = {
    "like": "VERB ADJ", "left": "VERB ADJ", "born": "VERB", "named": "VERB", "app": "NOUN", "pm": "NOUN",
    "am": "VERB", "mix": "NOUN VERB", "dating": "VERB NOUN", "kids": "NOUN", "kid": "NOUN", "dad": "NOUN",
    "mom": "NOUN", "mum": "NOUN", "boss": "NOUN", "dog": "NOUN", "dogs": "NOUN", "cat": "NOUN",
    "cats": "NOUN", "people": "NOUN", "home": "NOUN ADV", "time": "NOUN", "times": "NOUN", "max": "",
    "years": "NOUN", "year": "NOUN", "mother": "NOUN", "father": "NOUN", "man": "NOUN", "men": "NOUN",
    "husband": "NOUN", "baby": "NOUN", "fish": "NOUN VERB", "doctor": "NOUN", "nurse": "NOUN",
    "daughter": "NOUN", "son": "NOUN", "friend": "NOUN", "friends": "NOUN", "brother": "NOUN",
    "sister": "NOUN", "partner": "NOUN", "partners": "NOUN", "birthday": "NOUN", "car": "NOUN",
    "job": "NOUN", "jobs": "NOUN", "school": "NOUN", "ok": "ADJ", "okay": "ADJ", "rose": "VERB NOUN",
    "coach": "NOUN VERB", "cook": "NOUN VERB", "train": "NOUN VERB", "lab": "NOUN", "city": "NOUN",
    "house": "NOUN", "flat": "NOUN ADJ", "apartment": "NOUN", "coffee": "NOUN", "tea": "NOUN",
    "meat": "NOUN", "pet": "NOUN", "pets": "NOUN", "bird": "NOUN", "horse": "NOUN", "parrot": "NOUN",
    "shop": "NOUN VERB", "company": "NOUN", "team": "NOUN VERB", "guitar": "NOUN", "piano": "NOUN",
    "soccer": "NOUN", "tennis": "NOUN", "water": "NOUN VERB", "single": "ADJ", "married": "VERB ADJ",
    "retired": "VERB ADJ", "divorced": "VERB ADJ", "engaged": "VERB ADJ", "gluten": "NOUN",
    "peanuts": "NOUN", "nuts": "NOUN", "milk": "NOUN", "bike": "NOUN VERB", "room": "NOUN",
    "may": "", "will": "", "mark": "", "bill": "NOUN", "jack": "", "sue": "", "rob": "", "drew": "VERB",
    "sam": "", "tom": "", "tony": "", "anna": "", "rex": "", "luna": "", "bella": "", "grace": "",
    "hope": "VERB NOUN", "daisy": "", "lily": "", "ruby": "", "pat": "", "frank": "", "dean": "",
}  # fmt: skip

NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
         "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
         "twenty"]
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80",
     "ninety": "90", "hundred": "100", "dozen": "12"}  # fmt: skip

# --- function words -----------------------------------------------------------------------------------

SUBJECT_PRONOUNS = bag("i you he she it we they")
OBJECT_PRONOUNS = bag("me him us them")
POSSESSIVES = bag("my your his its our their whose")
FIRST_PERSON = bag("i me my mine myself we us our ours ourselves")
DETERMINERS = bag("a an the this these those some any every each no another both all many few several")
PREPOSITIONS = bag(
    "of in on at by with from for about into onto over under near through during against among between "
    "around across behind beside besides beyond within without towards toward upon via per despite except "
    "outside inside until till since before after as like than off up down out along unlike versus instead"
)
SUBORDINATORS = bag("because although though while whereas if unless when whenever once where whether cause")
COORDINATORS = bag("and but or so yet nor plus")
MODALS = bag("can could will would shall should may might must 'll")
BE = bag("be am is are was were been being 'm 're")
HAVE = bag("have has had having 've")
DO = bag("do does did")
NEGATORS = bag("not n't never")
WH = bag("who whom what which when where why how whose")
ADVERBS = bag(
    "also just really very quite still already now currently nowadays usually always often sometimes rarely "
    "seldom never recently lately soon then there here too again actually finally even only mostly mainly "
    "basically honestly definitely probably maybe perhaps apparently once twice yesterday today tomorrow "
    "tonight anymore longer ever almost nearly about instead away back together later ago rather pretty so "
    "originally formerly previously officially happily literally totally well not n't all kind simply exactly"
)
MONTHS = bag(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
WEEKDAYS = bag(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun"
)
TIME_NOUNS = (
    MONTHS
    | WEEKDAYS
    | bag(
        "morning afternoon evening night noon midnight week month year day weekend spring summer autumn fall "
        "winter today tomorrow tonight yesterday christmas easter thanksgiving oclock o'clock am pm"
    )
)

# --- people, animals, things --------------------------------------------------------------------------

KIN = bag(
    "mother mom mum mommy mummy father dad daddy sister brother sibling son daughter child kid baby wife "
    "husband spouse partner girlfriend boyfriend fiance fiancee fiancé fiancée uncle aunt cousin niece "
    "nephew grandmother grandma granny grandfather grandpa grandson granddaughter grandchild twin "
    "stepmother stepfather stepson stepdaughter stepbrother stepsister godmother godfather parent "
    "grandparent ex mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law"
)
PEOPLE = KIN | bag(
    "friend roommate flatmate housemate neighbour neighbor boss manager colleague coworker co-worker "
    "teacher professor doctor dentist therapist coach landlord landlady mentor assistant student tutor "
    "nanny babysitter gp vet psychiatrist client buddy mate bestie supervisor classmate teammate tenant"
)
ANIMALS = bag(
    "dog puppy pup cat kitten bird parrot parakeet budgie canary hamster rabbit bunny horse pony fish "
    "goldfish turtle tortoise snake lizard gecko ferret mouse rat hen chicken duck goat sheep cow pig pet "
    "hedgehog iguana cockatiel chinchilla donkey axolotl guinea-pig"
)
BREEDS = {
    "dog": bag(
        "retriever labrador lab poodle terrier spaniel shepherd collie beagle bulldog dachshund husky "
        "corgi pug chihuahua rottweiler boxer dalmatian mastiff hound greyhound whippet schnauzer "
        "pinscher setter pointer malinois samoyed akita shiba maltese shih-tzu pomeranian labradoodle "
        "cockapoo goldendoodle doodle mutt bernese weimaraner vizsla mongrel purebred"
    ),
    "cat": bag("siamese persian tabby sphynx ragdoll bengal shorthair longhair birman calico tortoiseshell"),
    "bird": bag("cockatoo macaw budgerigar cockatiel finch"),
    "horse": bag("mare stallion gelding arabian thoroughbred"),
}
MALE = bag(
    "father dad daddy brother son husband boyfriend uncle nephew grandfather grandpa grandson stepfather "
    "stepson fiance fiancé godfather stepbrother landlord man boy guy father-in-law brother-in-law son- "
    "in-law"
)
FEMALE = bag(
    "mother mom mum mommy sister daughter wife girlfriend aunt niece grandmother grandma granny "
    "granddaughter stepmother stepdaughter fiancee fiancée godmother stepsister landlady woman girl lady "
    "mother-in-law sister-in-law daughter-in-law"
)
FIRST_NAMES = {
    "male": bag(
        "james john robert michael david william richard joseph thomas tom charles christopher chris "
        "daniel dan matthew matt anthony tony mark donald steven steve paul andrew andy joshua josh "
        "kenneth ken kevin brian george timothy tim ronald jason edward ed jeffrey jeff ryan jacob jake "
        "gary nicholas nick eric jonathan jon stephen larry justin scott brandon benjamin ben samuel "
        "gregory greg alexander frank patrick raymond jack dennis jerry tyler aaron jose adam nathan "
        "henry peter zachary kyle noah liam oliver leo lucas oscar max hugo felix theo ethan mason logan "
        "owen omar ahmed ali mohammed ivan luis carlos diego juan marco luca pedro raj arjun kenji "
        "hiroshi wei erik lars sven bob bill jim joe mike rob ravi amir hassan viktor"
    ),
    "female": bag(
        "mary patricia jennifer jen linda elizabeth liz barbara susan sue jessica jess sarah sara karen "
        "lisa nancy betty margaret sandra ashley kimberly kim emily donna michelle carol amanda melissa "
        "deborah stephanie rebecca becca laura helen sharon cynthia kathleen amy angela shirley anna ann "
        "anne brenda pamela emma nicole katherine kate katie samantha christine catherine virginia debra "
        "rachel carolyn janet maria heather diane julie joyce victoria kelly christina lauren joan evelyn "
        "olivia judith megan cheryl andrea hannah martha jacqueline frances gloria teresa sophia sophie "
        "grace amber alice lea lena mia zoe chloe ella lily ava nora clara ines elena nina priya aisha "
        "fatima yuki mei ingrid astrid julia isabella camila rosa eva nadia"
    ),
}
SYNONYMS = {
    "dr": "doctor",
    "mom": "mother", "mum": "mother", "mommy": "mother", "mama": "mother", "dad": "father", "daddy": "father",
    "papa": "father", "spouse": "partner", "grandma": "grandmother", "granny": "grandmother",
    "nana": "grandmother", "grandpa": "grandfather", "granddad": "grandfather", "puppy": "dog", "pup": "dog",
    "kitten": "cat", "kitty": "cat", "bunny": "rabbit", "kid": "child", "flat": "apartment",
    "automobile": "car", "doc": "doctor", "physician": "doctor", "bike": "bicycle", "cycle": "bicycle",
    "phone": "telephone", "cellphone": "telephone", "mobile": "telephone", "favorite": "favourite",
    "color": "colour", "neighbor": "neighbour", "manager": "boss", "supervisor": "boss",
    "flatmate": "roommate",
    "housemate": "roommate", "coworker": "colleague", "co-worker": "colleague", "buddy": "friend",
    "pal": "friend",
    "mate": "friend", "bestie": "friend", "job": "work", "employment": "work", "position": "work",
    "profession": "occupation", "appt": "appointment", "movie": "film",
    "soccer": "football", "vacation": "holiday", "uni": "university",
    "college": "university", "birthdate": "birthday", "lab": "labrador", "folk": "parent", "fiancé": "fiance",
    "fiancée": "fiancee", "tv": "television", 

    "physiotherapist": "physio", "veggie": "vegetarian", "dr.": "doctor",
    "programmer": "developer", "coder": "developer", "attorney": "lawyer", "exam": "exam",
    "test": "exam", 
}  # fmt: skip

# --- what excludes what -------------------------------------------------------------------------------

VALUE_CLASSES = {
    "diet": bag("vegetarian vegan pescatarian omnivore carnivore flexitarian keto meat-eater"),
    "marital": bag("single married divorced widowed engaged separated"),
    "handedness": bag("left-handed right-handed ambidextrous"),
    "life": bag("alive dead deceased"),
    "colour": bag(
        "red blue green yellow orange purple violet pink brown black white grey gray beige turquoise teal "
        "maroon navy silver gold golden cream magenta cyan ginger blonde blond brunette lilac lavender "
        "indigo"
    ),
    "religion": bag(
        "christian catholic protestant muslim jewish hindu buddhist atheist agnostic mormon sikh orthodox"
    ),
    "size": bag("small big large tiny huge medium"),
    "height": bag("tall short"),
    "workload": bag("part-time full-time"),
    "employment": bag("employed unemployed retired self-employed freelance jobless laid-off"),
    "drinking": bag("sober teetotal teetotaler"),
    "smoking": bag("smoker non-smoker nonsmoker"),
    "orientation": bag("gay straight bisexual lesbian"),
    "chronotype": bag("morning night lark owl"),
    "personality": bag("introvert extrovert ambivert introverted extroverted outgoing shy"),
    "health": bag("healthy sick ill cured recovered"),
    "housing": bag("renter homeowner tenant"),
    "pregnancy": bag("pregnant"),
}
PROFESSION_SUFFIXES = ("er", "or", "ist", "ian", "eer", "man", "woman", "wright", "ess", "ant", "ect", "yst")
PROFESSIONS = bag(
    "nurse cook chef pilot vet student intern freelancer lawyer doctor teacher judge coach clerk "
    "architect analyst consultant assistant accountant surgeon attorney barista paramedic mechanic "
    "plumber waiter waitress guard scientist engineer developer designer manager director ceo cto founder "
    "entrepreneur contractor professor carpenter apprentice trainee cashier secretary diplomat soldier "
    "principal dean scribe actor athlete model monk priest pastor nun executive official agent rep "
    "representative specialist technician lead head dermatologist economist"
)
NOT_PROFESSIONS = (
    PEOPLE - bag(
        "teacher professor doctor dentist therapist coach landlord landlady tutor nanny babysitter vet "
        "student manager assistant coach mentor supervisor gp psychiatrist"
    )
    | bag(
        "retriever terrier spaniel setter pointer boxer rottweiler pinscher shepherd schnauzer lover fan "
        "drinker eater person owner reader player beginner runner hiker swimmer smoker non-smoker member "
        "vegetarian pescatarian italian canadian brazilian australian american german russian winner "
        "learner sleeper riser meat-eater morning introvert extrovert river winter summer paper number "
        "homeowner renter dinner gamer survivor newcomer foreigner teenager supporter believer"
    )
)  # fmt: skip
ANTONYM_VERBS = {
    "like": "hate", "love": "hate", "enjoy": "hate", "adore": "hate", "prefer": "hate",
}  # fmt: skip
LIKING = bag("like love enjoy adore prefer fancy dig")
DISLIKING = bag("hate dislike loathe detest despise")
SAYING = bag(
    "think guess believe suppose know mean say tell hear find hope wish forget remember realize realise "
    "mention notice feel swear promise note remind assume bet figure"
)
STATES = bag("live reside stay work study attend be date own have drive use like love hate speak play weigh")
INTRANSITIVE_PERFECT = bag(
    "been got had moved lived worked started become gone lost bought decided quit stopped gotten"
)
BEGINNING = bag("start begin take resume commence")
CEASING = frozenset({"give up", "cut out", "drop out"}) | bag(
    "stop quit cease finish end drop abandon discontinue"
)
LOSING = frozenset({"give away", "throw away", "throw out", "trade in", "hand back"}) | bag(
    "delete remove rid sell lose ditch donate dump return cancel scrap"
)
MEAT = bag(
    "meat steak chicken beef pork bacon ham lamb burger sausage turkey ribs salami barbecue duck veal "
    "hamburger brisket pepperoni"
)
FISH = bag("fish seafood salmon tuna sushi shrimp prawn cod lobster crab oyster sashimi")
DAIRY = bag("cheese milk butter yogurt yoghurt egg cream ice-cream honey dairy")
