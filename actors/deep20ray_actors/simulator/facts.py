"""What the simulator's world holds: kinds of statement, and subjects with what is true of them. Plain facts in our own words.

A property is ``verb|rest``; it gives a question and the sentences that evidence says it with. A subject lists what holds; ``~`` marks
what sources only lean towards, ``?`` what none of them speaks of. All else of its category does not hold.
"""

PROPERTIES: dict[str, dict[str, str]] = {
    "person": {
        "male": "is|male", "alive": "is|alive today", "old": "was|born before 1800", "modern": "was|born after 1900",
        "science": "is known for|work in science", "physics": "is known for|work in physics", "maths": "is known for|work in mathematics",
        "writing": "is known for|writing", "novels": "is known for|writing novels", "horror": "is known for|horror stories",
        "music": "is known for|making music", "composer": "is known for|composing", "painting": "is known for|painting",
        "politics": "is known for|holding political office", "war": "is known for|leading armies", "ruler": "was|the ruler of an empire or kingdom",
        "religion": "is known for|religious work", "philosophy": "is known for|philosophy", "medicine": "was trained in|medicine",
        "acting": "is known for|acting", "sport": "is known for|playing a sport", "nobel": "has|a Nobel Prize", "peace": "has|a Nobel Peace Prize",
        "american": "was|born in the United States", "german": "was|born in what was then Germany", "french": "was|born in France",
        "british": "was|born in Britain", "asian": "was|born in Asia", "european": "was|born in Europe", "african": "was|born in Africa",
        "inventor": "is known for|inventions", "violent": "was|killed by someone else",
    },
    "fictional_character": {
        "male": "is|male", "animal": "is|an animal", "human": "is|a human being", "cat": "is|a cat", "dog": "is|a dog", "orange": "is|mainly orange",
        "comic": "was|first seen in a comic", "book": "was|first seen in a book", "film": "was|first seen in a film or cartoon",
        "hero": "has|superhuman powers", "magic": "can|do magic", "villain": "is|a villain", "child": "is|a child", "flies": "can|fly",
        "talks": "can|talk to people", "lazy": "is known for|being lazy", "food": "is known for|loving food", "detective": "is known for|solving crimes",
        "mouse": "is|a mouse", "british": "was|created by a British author", "clothes": "is|usually dressed", "duck": "is|a bird", "space": "is|at home in outer space",
        "sword": "is known for|sword fighting",
    },
    "mythological_figure": {
        "male": "is|male", "greek": "is|part of Greek mythology", "norse": "is|part of Norse mythology", "egypt": "is|part of Egyptian mythology",
        "god": "is|worshipped as a god", "mortal": "was|able to die", "halfgod": "has|one divine parent", "war": "is known for|fighting in a war",
        "troy": "is|part of the story of the Trojan War", "sea": "is known for|the sea", "monster": "is|a monster", "under": "is known for|the underworld",
        "thunder": "is known for|thunder", "love": "is known for|love", "journey": "is known for|a long journey", "labour": "is known for|great labours",
        "weak": "has|one vulnerable spot", "wise": "is known for|wisdom", "sun": "is known for|the sun", "snakes": "has|snakes for hair",
        "king": "was|a king", "trick": "is known for|tricking others", "animal": "has|parts of an animal",
    },
    "video_game_character": {
        "male": "is|male", "human": "is|a human being", "nintendo": "is|owned by Nintendo", "sega": "is|owned by Sega", "moustache": "has|a moustache",
        "animal": "is|an animal", "royal": "is|a princess or a prince", "villain": "is|a villain", "gun": "has|a gun", "sword": "has|a sword",
        "fast": "is known for|running fast", "jump": "is known for|jumping", "red": "is|mainly dressed in red", "green": "is|mainly dressed in green",
        "robot": "is|a robot or dressed as one", "ape": "is|an ape", "yellow": "is|mainly yellow", "eats": "is known for|eating enemies or dots",
        "brother": "has|a famous brother", "space": "is known for|adventures in space", "tomb": "is known for|exploring ruins", "plumber": "is|a plumber",
    },
    "thing": {
        "living": "is|a living being", "made": "is|made by people", "hand": "can|be held in one hand", "metal": "is|usually made of metal",
        "wood": "is|usually made of wood", "house": "is|found in most homes", "outdoors": "is|mostly found outdoors", "body": "is|part of the human body",
        "nature": "is|found in nature", "furniture": "is|a piece of furniture", "tool": "is|a tool", "power": "does need|electricity",
        "car": "is|larger than a car", "sky": "can|be seen in the sky", "animal": "is|made by an animal", "eat": "can|be eaten", "wear": "is|worn on the body",
        "moves": "has|moving parts", "paper": "is|made of paper", "soft": "is|soft", "water": "is|used with water", "kitchen": "is|mostly used in a kitchen",
        "air": "is used with|air", "door": "is|part of a door", "hair": "is|made of hair", "round": "is|round", "sharp": "is|sharp",
        "bicycle": "is used with|a bicycle", "face": "is|on the face", "thread": "is|made of threads", "light": "does give|light", "write": "is used for|writing",
        "sit": "is used for|sitting or lying on", "sound": "is used for|making sound", "clean": "is used for|cleaning", "trap": "is used for|catching something",
        "open": "is used for|opening something", "unique": "is|one of a kind", "glass": "is|usually made of glass",
    },
}  # fmt: skip

SUBJECTS: dict[str, str] = {
    "person": """
Albert Einstein: male science physics ~maths nobel german european ~music ~philosophy
Albert Schweitzer: male writing music religion philosophy medicine nobel peace ~german ?french european
Stephen King: male alive modern writing novels horror american
Genghis Khan (Chinggis Khan; Temujin): male old war ruler asian ?violent
Isaac Newton: male old science physics maths british european ~religion
Marie Curie: science physics nobel european
Charles Darwin: male science writing british european
Galileo Galilei: male old science physics maths inventor european
Stephen Hawking: male modern science physics maths writing british european
Nikola Tesla: male science physics inventor european
Thomas Edison: male inventor american ~science
Ada Lovelace: maths science british european ~writing
Leonardo da Vinci: male old painting inventor science european
Pablo Picasso: male painting european
Vincent van Gogh: male painting european
Frida Kahlo: modern painting
Wolfgang Amadeus Mozart: male old music composer european
Ludwig van Beethoven: male old music composer ~german european
Johann Sebastian Bach: male old music composer ~german european ~religion
Elvis Presley: male modern music american acting
Bob Dylan: male alive modern music composer writing nobel american
William Shakespeare: male old writing british european ~acting
Jane Austen: old writing novels british european
Agatha Christie: writing novels british european
Mark Twain: male writing novels american
J. K. Rowling: alive modern writing novels british european
Edgar Allan Poe: male writing horror american
Napoleon Bonaparte (Napoleon): male old war ruler politics french european
Julius Caesar: male old war ruler politics writing european violent
Alexander the Great: male old war ruler european
Cleopatra: old ruler african
Attila: male old war ruler ?european ?asian
Kublai Khan: male old war ruler asian
Queen Victoria: ruler british european
Winston Churchill: male politics writing nobel british european ~war
Abraham Lincoln: male politics american violent
Barack Obama: male alive modern politics writing nobel peace american
Nelson Mandela: male modern politics nobel peace african
Mahatma Gandhi: male politics asian violent ~religion ~philosophy
Martin Luther King: male modern religion politics? nobel peace american violent
Mother Teresa: modern religion nobel peace european
Martin Luther: male old religion writing ~german european
Immanuel Kant: male old philosophy writing ~german european
Karl Marx: male philosophy writing ~german european ~politics
Plato: male old philosophy writing european
Confucius: male old philosophy asian ~religion
Sigmund Freud: male medicine science writing european ~philosophy
Florence Nightingale: ~medicine european ~writing
Louis Pasteur: male science french european ~medicine
Marilyn Monroe: modern acting american
Charlie Chaplin: male acting british european ~music
Pele: male modern sport
Muhammad Ali: male modern sport american
Serena Williams: alive modern sport american
""",
    "fictional_character": """
Garfield: male animal cat orange comic lazy food ~talks
Snoopy: male animal dog comic
Mickey Mouse: male animal mouse film talks clothes
Donald Duck: male animal duck film talks clothes
Bugs Bunny: male animal film talks food
Tom Cat (Tom): male animal cat film
Hello Kitty: ~animal ~cat clothes child
Winnie the Pooh: male animal book talks food british ~orange
Paddington Bear: male animal book talks food british clothes
Scooby-Doo: male animal dog film talks food detective
Tigger: male animal cat orange book talks british
Superman: male comic hero flies talks clothes space
Batman: male human comic talks clothes detective
Spider-Man: male human comic hero talks clothes
Joker: male human comic villain talks clothes
Harry Potter: male human book magic talks clothes british flies ~child
Gandalf: male book magic talks clothes british sword
Sherlock Holmes: male human book detective talks clothes british
James Bond: male human book talks clothes british
Dracula: male book villain talks clothes hero
Peter Pan: male human child book flies talks clothes british
Darth Vader: male human film villain hero talks clothes space sword
Homer Simpson: male human film lazy food talks clothes
Charlie Brown: male human child comic talks clothes
Pippi Longstocking: human child book hero talks clothes
Tintin: male human comic detective talks clothes
Asterix: male human comic hero talks clothes sword
""",
    "mythological_figure": """
Achilles: male greek mortal halfgod war troy weak ?king
Hercules (Heracles): male greek halfgod labour ~mortal ~god
Odysseus (Ulysses): male greek mortal war troy journey king trick wise
Hector: male greek mortal war troy
Ajax: male greek mortal war troy
Agamemnon: male greek mortal war troy king
Paris of Troy (Paris): male greek mortal war troy love
Helen of Troy (Helen): greek mortal halfgod troy love
Aeneas: male greek mortal halfgod war troy journey ~king
Perseus: male greek mortal halfgod ~labour king
Theseus: male greek mortal labour king ~halfgod
Jason: male greek mortal journey
Orpheus: male greek mortal ~halfgod under journey love
Medusa: greek mortal monster snakes ~animal
Minotaur: male greek mortal monster animal
Zeus: male greek god thunder king
Poseidon: male greek god sea
Hades: male greek god under king
Athena: greek god war wise troy
Aphrodite: greek god love troy
Ares: male greek god war troy
Apollo: male greek god sun troy
Hermes: male greek god trick journey
Thor: male norse god thunder war ~mortal
Odin: male norse god wise king war ~mortal
Loki: male norse ~god trick ~mortal
Siegfried (Sigurd): male norse mortal weak
Baldur: male norse god weak mortal
Ra: male egypt god sun animal king
Anubis: male egypt god under animal
Osiris: male egypt god under king
Isis: egypt god love ~wise
""",
    "video_game_character": """
Mario: male human nintendo moustache jump red brother plumber ~space
Luigi: male human nintendo moustache jump green brother plumber
Wario: male human nintendo moustache yellow ~villain
Princess Peach: human nintendo royal
Bowser: male nintendo animal villain
Yoshi: ?male nintendo animal green eats jump
Donkey Kong: male nintendo animal ape jump ~villain
Link: male nintendo green sword
Princess Zelda: nintendo royal
Samus Aran: human nintendo gun robot space
Kirby: male nintendo eats jump
Pikachu: nintendo animal yellow ~fast
Fox McCloud: male nintendo animal gun space
Sonic: male sega animal fast jump
Tails: male sega animal yellow
Doctor Eggman: male human sega moustache villain red
Knuckles: male sega animal ~red
Lara Croft: human gun tomb jump
Master Chief: male human gun robot green space
Pac-Man: male yellow eats
Mega Man: male robot gun jump
Solid Snake: male human gun
Kratos: male sword ~human
Cloud Strife: male human sword
Crash Bandicoot: male animal jump
""",
    "thing": """
bike pump (bicycle pump): made hand metal tool moves air bicycle ~house
spider web (cobweb; spider's web): nature animal thread trap outdoors ~house ~round
eyebrow (eyebrows): body nature hair face hand? soft
Moon (the Moon; Luna): nature car sky round unique light~
door handle (doorknob): made hand metal house door open ~moves
Sun (the Sun): nature car sky round unique light
Earth: nature car round unique water
star: nature car sky light round
cloud: nature car sky water soft outdoors
rainbow: nature car sky outdoors
tree: living nature car wood outdoors
flower: living nature hand outdoors soft
mushroom: living nature hand eat outdoors soft
apple: nature hand eat round
bread: made hand eat soft kitchen house
egg: nature animal hand eat round
honey: nature animal eat
bird nest: nature animal outdoors wood? round
cocoon: nature animal hand thread
pearl: nature animal hand round
ear: body nature
nose: body nature face
eye: body nature face round
beard: body nature hair face
eyelash: body nature hair face hand
fingernail: body nature hand
heart: body nature moves
tooth: body nature hand sharp
key: made hand metal house open tool
door: made wood house open moves
window: made glass house open
lock: made hand metal house door
hinge: made hand metal house door moves
doorbell: made hand house door power sound
hammer: made hand metal tool house
screwdriver: made hand metal tool house
pair of scissors (scissors): made hand metal tool house moves sharp
knife: made hand metal tool house kitchen sharp
spoon: made hand metal house kitchen
cup: made hand house kitchen round
teapot: made hand house kitchen water
chair: made wood house furniture sit
table: made wood house furniture
bed: made wood house furniture sit
lamp: made house power light ~furniture
candle: made hand light house
pencil: made hand wood write house
book: made hand paper house
newspaper: made hand paper
umbrella: made hand moves outdoors water
hat: made hand wear soft house
shoe: made hand wear house
pair of glasses (glasses; spectacles): made hand wear glass face
ring: made hand wear metal round
clock: made house moves sound ~round
telephone: made hand house power sound
guitar: made wood sound
drum: made sound round
whistle: made hand sound air
balloon: made hand soft air round
fan: made house power moves air
vacuum cleaner: made house power moves air clean
broom: made house clean wood tool
sponge: made hand soft water clean house kitchen
soap: made hand water clean house
bicycle: made metal moves outdoors
bicycle bell: made hand metal moves bicycle sound
bicycle helmet: made wear bicycle
tyre (tire): made round air outdoors ~bicycle
car: made metal moves outdoors
fishing net: made thread trap water
mousetrap: made hand trap moves house ~wood
rope: made hand thread
carpet: made thread soft house
pillow: made soft house sit~
mirror: made glass house
bottle: made hand glass house kitchen
computer: made house power
magnet: made hand metal tool~
""",
}
"""``name (alias; alias): property property ~leaning ?unspoken``, one a line."""
